"""The data sets that there are: their sizes and types, and the names they are published under.

The six of the paper have the sizes of its appendix ("Datasets information"; the row of mnist is
garbled there, so that one has its well-known sizes). The paper takes them from the LIBSVM site,
and the sizes of dna, letter and protein are those of the ``.tr`` files, without ``.val``. It does
not say whether seismic was scaled; the file called seismic is the unscaled one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

COMPRESSIONS = (".bz2", ".xz")
PARTS = ("train", "test")


@dataclass(frozen=True)
class SourceFile:
    """A file in LIBSVM's text format, as it is published."""

    address: str  # below the site's folder of multi-class sets
    sha256: str | None = None  # of the text, decompressed; None: only what it holds is checked

    @property
    def name(self) -> str:
        """The file's name, including the suffix of its compression."""
        return PurePosixPath(self.address).name

    @property
    def plain_name(self) -> str:
        """The file's name without the suffix of its compression."""
        path = PurePosixPath(self.address)
        return path.stem if path.suffix in COMPRESSIONS else path.name


@dataclass(frozen=True)
class DataSet:
    """The description of a data set: what is known of it before it is read."""

    name: str
    description: str
    n_train: int
    n_test: int
    n_features: int
    dtype: str  # of X
    y_dtype: str | None  # None: no targets, but a word for each row
    n_classes: int | None = None  # None: the targets are not classes
    sources: tuple[SourceFile, SourceFile] | None = None  # train, test; None: not downloaded
    advice: str = ""  # where else the rows can be found

    def n_rows(self, part: str) -> int:
        """Return the number of rows in the part "train" or "test"."""
        return self.n_train if part == "train" else self.n_test

    def arrays(self, part: str) -> tuple[str, str]:
        """Return the names of a part's two arrays."""
        return f"X_{part}", f"words_{part}" if self.y_dtype is None else f"y_{part}"


_PAPER = (
    DataSet(
        "dna",
        "Splice junctions in DNA, 60 bases of three binary features each; 3 classes.",
        *(1400, 1186, 180, "uint8", "int16", 3),
        sources=(
            SourceFile(
                "dna.scale.tr",
                "101d8f3dc2b4da34263a9dd35694a3896df5830de16650f1307dfa4e0c47976c",
            ),
            SourceFile(
                "dna.scale.t",
                "d2eeed170e4e38ae2aba6aa4cd27a8ca4ecceb01a7751e8e509bb4e1a6bcef39",
            ),
        ),
    ),
    DataSet(
        "letter",
        "Printed capital letters by 16 measures of their shape, scaled to [-1, 1]; 26 classes.",
        *(10500, 5000, 16, "float32", "int16", 26),
        sources=(
            SourceFile(
                "letter.scale.tr",
                "701e46fa614770d41849b5df32268515df49559463887d50f00d6e1aeeaee7b9",
            ),
            SourceFile(
                "letter.scale.t",
                "07522ccbf54187fae6d560d1712b88c41ea1f7e8d19491c5adcc22ee37a075da",
            ),
        ),
    ),
    DataSet(
        "mnist",
        "Handwritten digits, 28 x 28 grey pixels from 0 to 255; 10 classes.",
        *(60000, 10000, 784, "uint8", "uint8", 10),
        sources=(SourceFile("mnist.bz2"), SourceFile("mnist.t.bz2")),
    ),
    DataSet(
        "pendigits",
        "Digits written with a pen, 8 points of it from 0 to 100; 10 classes.",
        *(7494, 3498, 16, "uint8", "int16", 10),
        sources=(
            SourceFile(
                "pendigits",
                "6e8a2f318a24d97d26a9c381642621dc955fed73ec44c4d417bd7afbb47ed67c",
            ),
            SourceFile(
                "pendigits.t",
                "5ddb2f034e1c5ca8a47b8a7e78510f8a9d68015cf40a5031534c693fba9773d3",
            ),
        ),
    ),
    DataSet(
        "protein",
        "Secondary structure of proteins from a window of their sequence; 3 classes.",
        *(14895, 6621, 357, "float32", "int16", 3),
        sources=(SourceFile("protein.tr.bz2"), SourceFile("protein.t.bz2")),
    ),
    DataSet(
        "seismic",
        "SensIT vehicles by the seismic sensors of a network, not scaled; 3 classes.",
        *(78823, 19705, 50, "float32", "int16", 3),
        sources=(SourceFile("vehicle/seismic.bz2"), SourceFile("vehicle/seismic.t.bz2")),
    ),
)

# Not downloaded: where the rows are published, the split, the features or the types differ.
_MORE = (
    DataSet(
        "abalone",
        "Abalones' rings from their sex, as 3 binary features, and 7 measures; regression.",
        *(3133, 1044, 10, "float64", "float64"),
        advice="UCI publishes the rows, without this split.",
    ),
    DataSet(
        "california",
        "House prices in California, not scaled; regression.",
        *(16512, 4128, 8, "float64", "float64"),
        advice="scikit-learn's fetch_california_housing has other features and no split.",
    ),
    DataSet(
        "covtype",
        "Forest cover in the order of UCI's file, not scaled; 7 classes.",
        *(15120, 565892, 54, "int16", "int8", 7),
        advice="scikit-learn's fetch_covtype gives all rows; the first 15120 are X_train.",
    ),
    DataSet(
        "electricity",
        "Rises and falls of an electricity price, a stream in the order of time; 2 classes.",
        *(30000, 15312, 6, "float64", "int8", 2),
        advice="X_train and then X_test are the stream.",
    ),
    DataSet(
        "glove100",
        "GloVe 6B word vectors; retrieval: words_train and words_test name the rows.",
        *(118000, 2000, 100, "float32", None),
    ),
)

CATALOGUE = {data_set.name: data_set for data_set in (*_PAPER, *_MORE)}


def names() -> list[str]:
    """Return the names that :func:`load` accepts: the paper's six data sets, then the others."""
    return list(CATALOGUE)


def look_up(name: str) -> DataSet:
    """Return the description of the data set of this name."""
    try:
        return CATALOGUE[name]
    except (KeyError, TypeError):
        known = ", ".join(CATALOGUE)
        raise ValueError(f"name must be one of {known}, got {name!r}") from None
