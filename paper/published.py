"""The numbers of the paper's tables, by learner and by data set.

BF and RF are those of the main text, CT is CT(1.3, 10). Testing times that are slips of the paper
(they repeat the training times) are left out.
"""

from typing import Final

Numbers = dict[str, dict[str, float]]  # by learner, then by data set

SETS: Final = ("dna", "letter", "mnist", "pendigits", "protein", "seismic")


def _columns(**columns: tuple[float | None, ...]) -> Numbers:
    return {
        _NAMES[name]: {
            data: number for data, number in zip(SETS, numbers, strict=True) if number is not None
        }
        for name, numbers in columns.items()
    }


_NAMES: Final = {
    "BF": "BF",
    "OBF": "OBF",
    "BF_4": "BF-4",
    "NN_1": "1-NN",
    "NN_3": "3-NN",
    "NN_10": "10-NN",
    "RF": "RF-50",
    "RF_100": "RF-100",
    "R_kd": "R-kd",
    "CT": "CT(1.3, 10)",
    "CT_11_10": "CT(1.1, 10)",
    "CT_13_01": "CT(1.3, 0.1)",
    "CT_11_01": "CT(1.1, 0.1)",
}

ERRORS: Final = _columns(  # per cent
    BF=(14.3, 5.4, 2.24, 2.62, 44.2, 40.6),
    OBF=(13.1, 5.5, 2.6, 2.60, 41.7, 39.6),
    NN_1=(25.0, 5.5, 3.08, 2.26, 52.7, 34.6),
    NN_3=(23.9, 5.4, 2.8, 2.2, 50.7, 30.7),
    RF=(5.7, 7.6, 3.2, 5.2, 32.8, 23.7),
    R_kd=(22.5, 5.5, 3.08, 2.26, 53.6, 30.8),
    CT=(25.55, 5.6, 2.99, 2.8, 52.0, 38.9),
)
APPENDIX_ERRORS: Final = _columns(
    RF_100=(6.3, 5.4, 3.15, 3.6, 32.7, 26.3),
    NN_10=(17.3, 7.54, 3.26, 2.7, 46, 36),
    CT_11_10=(24.87, 5.92, 2.97, None, 52.23, 38.84),  # pendigits: 90.4, a slip, as below
    CT_13_01=(25.46, 5.44, 3.09, None, 52.74, 40.75),
    CT_11_01=(24.7, 5.44, 3.09, None, 52.74, 40.76),
)
TRAINING: Final = _columns(  # seconds
    BF=(0.34, 1.16, 103.9, 0.34, 35.47, 48.59),
    BF_4=(0.15, 0.80, 37.1, 0.42, 13.81, 16.30),
    R_kd=(0.042, 0.12, 5.67, 0.059, 0.90, 1.86),
    CT=(0.32, 1.37, 168.4, 0.004, 44.4, 176.1),
    RF=(3.64, 7.5, 310, 4.7, 191, 2830),
)
TESTING: Final = _columns(
    BF=(None, None, 23.9, None, None, 16.20),
    BF_4=(None, None, 8.7, None, None, 5.2),
    NN_1=(3.75, 5.5, 2900, 2.1, 380, 433),
    NN_3=(4.23, 6.4, 3200, 2.4, 404, 485),
    R_kd=(0.050, 1.67, 89.2, 0.75, 11.5, 65.7),
    CT=(0.25, 0.91, 417.6, 0.022, 51.4, 172.5),
    RF=(0.025, 0.11, 0.3, 0.03, 625, 1.32),
)
APPENDIX_TRAINING: Final = _columns(
    RF_100=(1.023, 6.2, 365, 2.9, 48.8, 332),
    CT_11_10=(0.08, 0.28, 18.84, 0.0037, 23.89, 115.22),
    CT_13_01=(0.126, 0.23, 177.75, 0.0029, 44.81, 191.09),
    CT_11_01=(0.085, 0.26, 18.34, 0.0029, 23.22, 105.52),
)
APPENDIX_TESTING: Final = _columns(
    RF_100=(0.03, 0.44, 0.76, 0.09, 0.56, 2.1),
    NN_10=(2.45, 3.9, 182, 1.8, 217, 18.4),
    CT_11_10=(0.31, 1.01, 369.9, 0.007, 56.45, 227.8),
    CT_13_01=(0.297, 0.85, 430.8, 0.005, 57.21, 208.6),
    CT_11_01=(0.53, 0.92, 398.5, 0.005, 73.34, 256.6),
)
# Classes, features, training and test examples; the appendix's row of mnist is garbled.
SIZES: Final = {
    "dna": (3, 180, 1_400, 1_186),
    "letter": (26, 16, 10_500, 5_000),
    "pendigits": (10, 16, 7_494, 3_498),
    "protein": (3, 357, 14_895, 6_621),
    "seismic": (3, 50, 78_823, 19_705),
}
MNIST_SIZES: Final = "10, 784, 60,00, 168.4"
