"""The Open Inference Protocol: by hand, and by Triton's own Python client."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from served import Process, in_process

X = np.array([[0.0, 1.0], [9.0, 1.0], [1.0, 1.0]])
QUERY = {"name": "rows", "datatype": "FP64", "shape": [2, 2], "data": [0, 1, 9, 1]}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with in_process(tmp_path_factory.mktemp("oip") / "model") as found:
        base = "/v2/models/model"
        assert found.get(f"{base}/ready").status == 503
        assert found.post(f"{base}/infer", {"inputs": [QUERY]}).status == 409
        found.post("/v1/learn", {"rows": X.tolist(), "targets": ["low", "high", "low"]})
        yield found
        assert found.failures.empty()


def infer(service, *inputs, **more):
    return service.post("/v2/models/model/infer", {"inputs": list(inputs), **more})


def data_of(answer):
    assert answer.status == 200, answer.content
    return {one["name"]: one["data"] for one in answer.json["outputs"]}


def test_metadata(service):
    server = service.get("/v2").json
    assert server["name"] == "boundary-forest"
    assert "binary_tensor_data" in server["extensions"]
    for path in ("/v2/models/model", "/v2/models/model/versions/1"):
        found = service.get(path).json
        assert found["name"] == "model"
        assert found["inputs"] == [{"name": "rows", "datatype": "FP32", "shape": [-1, 2]}]
        assert found["outputs"][0] == {"name": "predictions", "datatype": "BYTES", "shape": [-1]}
        assert service.get(f"{path}/ready").status == 200
    for path in ("/v2/models/other", "/v2/models/model/versions/2"):
        assert service.get(path).status == 404
        assert isinstance(service.get(path).json["error"], str)


def test_infer_gives_what_predict_gives(service):
    found = data_of(infer(service, QUERY, id="a1"))
    expected = service.post("/v1/predict", {"rows": X[:2].tolist()}).json
    assert found["predictions"] == expected["predictions"]
    classes = found["classes"]
    shares = np.reshape(found["probabilities"], (2, -1))
    named = [dict(zip(classes, row, strict=True)) for row in shares.tolist()]
    assert named == expected["probabilities"]
    assert infer(service, QUERY, id="a1").json["id"] == "a1"


@pytest.mark.parametrize("datatype", ["FP32", "FP64", "INT32", "UINT8", "FP16"])
def test_bytes_in_and_out(service, datatype):
    types = {"FP32": "<f4", "FP64": "<f8", "INT32": "<i4", "UINT8": "u1", "FP16": "<f2"}
    raw = X[:2].astype(types[datatype]).tobytes()
    tensor = {
        "name": "rows",
        "datatype": datatype,
        "shape": [2, 2],
        "parameters": {"binary_data_size": len(raw)},
    }
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    length = {"inference-header-content-length": str(len(head))}
    kind = "application/octet-stream"
    path = "/v2/models/model/infer"
    answer = service.request("POST", path, head + raw, kind, **length)
    end = int(answer.headers["inference-header-content-length"])
    predictions = json.loads(answer.content[:end])["outputs"][0]
    assert predictions["parameters"]["binary_data_size"] == 4 + 3 + 4 + 4
    assert answer.content[end : end + 7] == struct.pack("<I", 3) + b"low"
    truncated = service.request("POST", path, head + raw[:-1], kind, **length)
    assert truncated.status == 400


def test_columns_are_inputs_of_their_own(tmp_path):
    with in_process(tmp_path / "m") as service:
        rows = [{"size": 1.0, "kind": "x"}, {"size": 9.0, "kind": "y"}]
        service.post("/v1/learn", {"rows": rows, "targets": [1, 2]})
        found = service.get("/v2/models/m").json
        assert [(i["name"], i["datatype"]) for i in found["inputs"]] == [
            ("size", "FP64"),
            ("kind", "BYTES"),
        ]
        size = {"name": "size", "datatype": "FP64", "shape": [2, 1], "data": [1, 9]}
        kind = {"name": "kind", "datatype": "BYTES", "shape": [2, 1], "data": ["x", "y"]}
        body = {"inputs": [size, kind], "outputs": [{"name": "predictions"}]}
        answer = service.post("/v2/models/m/infer", body)
        assert answer.json["outputs"] == [
            {"name": "predictions", "datatype": "INT64", "shape": [2], "data": [1, 2]}
        ]
        alone = service.post("/v2/models/m/infer", {"inputs": [kind]})  # a missing column
        assert data_of(alone)["predictions"] == [1, 2]


def test_other_tasks(tmp_path):
    with in_process(tmp_path / "m", task="regression") as service:
        service.post("/v1/learn", {"rows": X.tolist(), "targets": [1.0, 2.0, 3.0]})
        answer = service.post("/v2/models/m/infer", {"inputs": [QUERY]})
        assert data_of(answer) == {"predictions": [1.0, 2.0]}
    with in_process(tmp_path / "n", task="retrieval") as service:
        service.post("/v1/learn", {"rows": X.tolist(), "ids": ["a", "b", "c"]})
        body = {"inputs": [QUERY], "parameters": {"n_neighbors": 1}}
        answer = service.post("/v2/models/n/infer", body)
        assert data_of(answer) == {"ids": ["a", "b"], "distances": [0.0, 0.0]}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"datatype": "FP128"}, 400),
        ({"shape": [3, 2]}, 400),
        ({"shape": [-1, 2]}, 400),
        ({"shape": "2"}, 400),
        ({"data": ["a", "b", "c", "d"]}, 400),
        ({"data": None}, 400),
        ({"data": [1e300, 1, 1, 1]}, 422),
        ({"name": 5}, 400),
        ({"parameters": []}, 400),
        ({"parameters": {"binary_data_size": 1}}, 400),
        ({"shape": [1, 4]}, 422),
        ({"shape": [4]}, 422),
        ({"shape": [0, 2], "data": []}, 422),
        ({"datatype": "BYTES", "data": list("abcd")}, 422),
    ],
)
def test_what_does_not_fit_is_refused_in_the_protocols_shape(service, change, status):
    answer = infer(service, {**QUERY, **change})
    assert (answer.status, {*answer.json}) == (status, {"error"})
    assert isinstance(answer.json["error"], str)


def test_other_requests_are_refused(service):
    assert infer(service).status == 400
    assert infer(service, QUERY, QUERY).status == 400
    assert infer(service, QUERY, {**QUERY, "name": "more"}).status == 422
    assert infer(service, QUERY, outputs=[{"name": "nothing"}]).status == 422
    path = "/v2/models/model/infer"
    assert service.request("POST", path, b"{", None).status == 400
    assert service.request("POST", path, b"{}", "text/plain").status == 415


def test_a_token_is_required_where_there_are_tokens(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("read reader-0123456789")
    with in_process(tmp_path / "m", token_file=tokens) as service:
        assert service.get("/v2/models/m").status == 401
        assert service.post("/v2/models/m/infer", {"inputs": [QUERY]}).status == 401
        found = service.get("/v2/models/m", authorization="Bearer reader-0123456789")
        assert found.json["inputs"] == []


def test_tritons_client_works_unchanged(tmp_path):
    triton = pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    with Process(tmp_path / "digits") as service:
        service.post("/v1/learn", {"rows": X.tolist(), "targets": ["low", "high", "low"]})
        client = triton.InferenceServerClient(f"127.0.0.1:{service.port}")
        try:
            assert client.is_server_live()
            assert client.is_server_ready()
            assert client.is_model_ready("digits")
            assert not client.is_model_ready("other")
            assert client.get_server_metadata()["name"] == "boundary-forest"
            assert client.get_model_metadata("digits")["inputs"][0]["shape"] == [-1, 2]
            for binary in (True, False):
                rows = triton.InferInput("rows", [3, 2], "FP32")
                rows.set_data_from_numpy(X.astype(np.float32), binary_data=binary)
                wanted = [
                    triton.InferRequestedOutput(name, binary_data=binary)
                    for name in ("predictions", "probabilities")
                ]
                for outputs in (None, wanted):
                    found = client.infer("digits", [rows], outputs=outputs, request_id="7")
                    values = [
                        value.decode() if isinstance(value, bytes) else value
                        for value in found.as_numpy("predictions").tolist()
                    ]
                    assert values == ["low", "high", "low"]
                    assert found.as_numpy("probabilities").shape == (3, 2)
                    assert found.get_response()["id"] == "7"
            rows = triton.InferInput("rows", [3, 3], "FP32")
            rows.set_data_from_numpy(np.zeros((3, 3), np.float32))
            with pytest.raises(Exception, match="takes rows of 2 numbers, got 3"):
                client.infer("digits", [rows])
        finally:
            client.close()
