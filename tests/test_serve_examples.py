"""The examples of a service are accepted by the programs that read them, and run."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from served import Process, in_process

EXAMPLES = Path(__file__).parents[1] / "examples" / "serve"
NGINX, SYSTEMD = shutil.which("nginx"), shutil.which("systemd-analyze")


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_nginx_accepts_its_configuration(tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    made += ["-days", "1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    text = (EXAMPLES / "nginx.conf").read_text()
    text = re.sub(r"ssl_certificate .*;", f"ssl_certificate {certificate};", text)
    text = re.sub(r"ssl_certificate_key .*;", f"ssl_certificate_key {key};", text)
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid; error_log stderr;\n{text}")
    command = [NGINX, "-t", "-q", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr


@pytest.mark.skipif(SYSTEMD is None, reason="systemd is not installed")
def test_systemd_accepts_its_unit(tmp_path):
    """With a program that is there, because the unit names the one of an installation."""
    unit = tmp_path / "boundary-forest.service"
    text = (EXAMPLES / unit.name).read_text()
    assert text.count("/opt/boundary-forest/bin/boundary-forest") == 1
    unit.write_text(text.replace("/opt/boundary-forest/bin/boundary-forest", sys.executable))
    command = [SYSTEMD, "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, told) == (0, []), done.stderr


def test_the_panels_name_metrics_that_there_are(tmp_path):
    text = (EXAMPLES / "grafana.md").read_text()
    named = {*re.findall(r"\bboundary_forest_\w+", text)}
    shown = set()
    for task in ("classification", "regression"):
        with in_process(tmp_path / task, task=task) as service:
            service.get("/v2/health/live")
            shown |= {
                *re.findall(
                    r"^(boundary_forest_\w+)", service.get("/metrics").content.decode(), re.M
                )
            }
    assert named - shown == set()


@contextlib.contextmanager
def running(*command):
    process = subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_lines_of_a_socket_are_learned(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = EXAMPLES / "learn_from_socket.py"
    lines = len(script.read_text().splitlines())
    assert lines <= 40
    with (
        Process(tmp_path) as service,
        running(script, port, f"http://127.0.0.1:{service.port}"),
    ):
        end = time.monotonic() + 60
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=30)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end
                time.sleep(0.05)
        with connection, connection.makefile("rw") as file:
            file.write("5.0,3.5,setosa\n6.0,2.9,virginica\n5.0,3.4,\n")
            file.flush()
            assert [file.readline().strip() for _ in range(3)] == ["None", "setosa", "setosa"]
        assert service.get("/v1/stats").json["examples_seen"] == 2


def test_the_demo_streams_digits_whose_labels_come_late(tmp_path):
    command = [EXAMPLES / "demo.py", tmp_path / "digits", "--port", "0"]
    command += ["--rows", "300", "--rows-per-s", "1000"]
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"Open http://127\.0\.0\.1:\d+/ ", done.stdout)
    with in_process(tmp_path / "digits") as service:
        stats = service.get("/v1/stats").json
        assert stats["waiting"]["rows"] == 200
        assert stats["examples_seen"] == 100
