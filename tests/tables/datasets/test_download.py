"""Downloads: checksums, folders, and what remains of failed ones."""

import hashlib
import http.server
import threading

import pytest
import scipy.io
from registered import rows_of

from fsjax import data
from fsjax.errors import DataError
from fsjax.tables.datasets.catalog import ENTRIES
from fsjax.tables.datasets.download import Remote, check_recorded, fetch

pytestmark = pytest.mark.usefixtures("only_tmp")


def test_offline_message(tmp_path, shrink) -> None:
    shrink("usps", remotes=(Remote("USPS.mat", ("http://127.0.0.1:9/USPS.mat",)),))
    with pytest.raises(DataError) as caught:
        data.load("usps", tmp_path / "nowhere")
    message = str(caught.value)
    for part in ("'usps'", "usps.npz; USPS.mat", "nowhere", ".cache/fsjax", "http://127.0.0.1:9"):
        assert part in message
    assert "FSJAX_DATA" in message and "refused" in message.lower()
    with pytest.raises(DataError, match="download=False"):
        data.load("usps", tmp_path, download=False)


@pytest.fixture
def server(tmp_path):
    """A local web server; yields its folder and its address."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))

        def do_GET(self) -> None:
            if self.path == "/moved.mat":
                self.send_response(302)
                self.send_header("Location", f"http://{self.headers['Host']}/a.mat")
                return self.end_headers()
            if self.path not in ("/short.mat", "/unknown.mat"):
                return super().do_GET()
            self.send_response(200)
            if self.path == "/short.mat":
                self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"abc")

        def log_message(self, *args: object) -> None:
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()


def test_download_records_the_checksum_and_checks_it_later(tmp_path, shrink, server) -> None:
    folder, address = server
    X, y = rows_of((50, 256), 10)
    scipy.io.savemat(folder / "USPS.mat", {"X": X, "Y": y + 1})
    urls = (f"{address}/absent.mat", f"{address}/USPS.mat")
    shrink("usps", shape=(50, 256), remotes=(Remote("USPS.mat", urls),))
    loaded = data.load("usps")
    target = tmp_path / "home/.cache/fsjax/usps/USPS.mat"
    assert loaded.source == str(target) and target.with_name("USPS.mat.sha256").exists()
    assert sorted(path.name for path in target.parent.iterdir()) == ["USPS.mat", "USPS.mat.sha256"]
    (folder / "USPS.mat").unlink()
    assert data.load("usps").num_samples == 50
    target.write_bytes(target.read_bytes() + b"x")
    with pytest.raises(DataError, match="has changed since it was downloaded"):
        data.load("usps")


@pytest.mark.parametrize(
    ("content", "sha256", "message"),
    [
        (b"something else", "0" * 64, "expected 0000"),
        (b"<html>log in</html>", None, "a web page"),
        (b"", None, "empty"),
    ],
)
def test_a_download_that_is_not_the_file_leaves_nothing(
    tmp_path, server, content, sha256, message
) -> None:
    folder, address = server
    (folder / "a.mat").write_bytes(content)
    with pytest.raises(DataError, match=message):
        fetch(Remote("a.mat", (f"{address}/a.mat",), sha256), tmp_path / "to")
    assert list((tmp_path / "to").iterdir()) == []


def test_a_download_that_stops_early_leads_to_the_next_source(tmp_path, server) -> None:
    folder, address = server
    with pytest.raises(DataError, match="short.mat .the download stopped after 3"):
        fetch(Remote("a.mat", (f"{address}/short.mat",)), tmp_path / "to")
    (folder / "a.mat").write_bytes(b"all of it")
    urls = (f"{address}/short.mat", f"{address}/a.mat")
    path = fetch(Remote("a.mat", urls), tmp_path / "to")
    assert path.read_bytes() == b"all of it"
    assert {item.name for item in path.parent.iterdir()} == {"a.mat", "a.mat.sha256"}


def test_a_folder_that_cannot_be_made(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot create"):
        fetch(Remote("a", ("http://127.0.0.1:9/a",)), tmp_path / "file/sub")


def test_a_file_that_is_there_is_compared_with_the_known_checksum(tmp_path, server) -> None:
    _, address = server
    urls, path = (f"{address}/a.mat",), tmp_path / "a.mat"
    path.write_bytes(b"something")
    right = hashlib.sha256(b"something").hexdigest()
    assert fetch(Remote("a.mat", urls, right), tmp_path) == path
    with pytest.raises(DataError, match="a.mat is not the published file: sha256"):
        fetch(Remote("a.mat", urls, "0" * 64), tmp_path)
    assert fetch(Remote("a.mat", urls), tmp_path) == path
    (tmp_path / "a.mat.sha256").write_text("0" * 64)
    with pytest.raises(DataError, match="has changed since it was downloaded"):
        fetch(Remote("a.mat", urls), tmp_path)


def test_an_empty_record_vouches_for_nothing(tmp_path) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(b"something")
    check_recorded(path)
    (tmp_path / "a.mat.sha256").write_text("\n")
    with pytest.raises(DataError, match="a.mat.sha256 is empty"):
        check_recorded(path)
    check_recorded(path, hashlib.sha256(b"something").hexdigest())
    with pytest.raises(DataError, match="has changed since .* published 0000"):
        check_recorded(path, "0" * 64)


def test_an_answer_of_unknown_length(tmp_path, server) -> None:
    _, address = server
    urls = (f"{address}/unknown.mat",)
    with pytest.warns(UserWarning, match="length of a.mat, .* the 3 bytes .* truncated"):
        fetch(Remote("a.mat", urls), tmp_path / "one")
    right = hashlib.sha256(b"abc").hexdigest()
    fetch(Remote("a.mat", urls, right), tmp_path / "two")
    with pytest.raises(DataError, match="expected 0000"):
        fetch(Remote("a.mat", urls, "0" * 64), tmp_path / "three")


def test_all_addresses_are_encrypted() -> None:
    addresses = [
        url for entry in ENTRIES.values() for remote in entry.remotes for url in remote.urls
    ]
    assert addresses and all(url.startswith("https://") for url in addresses)


def test_a_redirect_to_http_is_refused(tmp_path, server) -> None:
    folder, address = server
    (folder / "a.mat").write_bytes(b"content")
    message = f"it redirects to {address}/a.mat, which does not start with https://"
    with pytest.raises(DataError, match=message):
        fetch(Remote("a.mat", (f"{address}/moved.mat",)), tmp_path / "to")
    assert list((tmp_path / "to").iterdir()) == []
