from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from swsdask.archive.storage import Storage
from swsdask.formats import files
from swsdask.formats.files import open_bytes
from swsdask.formats.find import find_runs
from swsdask.formats.recognise import sniff
from swsdask.formats.runs.read import read_run
from swsdask.formats.values import system_of_file
from swsdask.model import safe_text
from swsdask.model.errors import ArchiveError, InputError, Problems, SettingsError
from swsdask.nightly.inbox import look
from tests.bench.cost import cost
from tests.compression import zstd


def zipped(members: Mapping[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


TEXT = b"one line\nand another\n" * 500
COMPRESSED = {
    "gzip": gzip.compress(TEXT, mtime=0),
    "zstd": zstd(TEXT),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zip": zipped({"run.txt": TEXT}),
}
EMPTY = {"gzip": gzip.compress(b""), "zstd": zstd(b""), "bzip2": bz2.compress(b"")}
EMPTY |= {"xz": lzma.compress(b""), "zip": zipped({"run.txt": b""})}


def read(path: Path | str) -> bytes:
    with open_bytes(str(path)) as source:
        return source.read()


def fault(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.problems[0].file == str(path)
    return str(caught.value)


@pytest.mark.parametrize("name", ["x", "x.gz", "x.zip", "x.xml"])
@pytest.mark.parametrize("content", [TEXT, *COMPRESSED.values()], ids=["plain", *COMPRESSED])
def test_content_decides_the_compression_and_the_name_does_not(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert read(path) == TEXT


@pytest.mark.parametrize("kind", sorted(COMPRESSED.keys() - {"zip"}))
def test_parts_compressed_one_behind_the_other(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(COMPRESSED[kind] * 3)
    assert read(path) == TEXT * 3


@pytest.mark.parametrize("kind", sorted(COMPRESSED.keys() - {"zip"}))
def test_what_follows_compressed_data_and_is_none_is_damage(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    second = bytearray(COMPRESSED[kind])
    second[0] ^= 1
    for rest in (b"no data", bytes(second)):
        path.write_bytes(COMPRESSED[kind] + rest)
        assert f"whole {kind} data" in fault(path)


@pytest.mark.parametrize("kind", ["bzip2", "xz"])
def test_zero_bytes_pad_compressed_data(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(COMPRESSED[kind] + bytes(100_000) + COMPRESSED[kind] + bytes(4))
    assert read(path) == TEXT * 2


@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_data_that_break_off_anywhere(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    for length in range(10, len(COMPRESSED[kind])):
        path.write_bytes(COMPRESSED[kind][:length])
        message = fault(path)
        assert f"whole {kind} data" in message
        assert "break off" in message


@pytest.mark.parametrize("kind", ["bzip2", "xz", "zip"])
def test_damaged_data(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    damaged = bytearray(COMPRESSED[kind])
    damaged[len(damaged) // 2 if kind != "zip" else 45] ^= 1
    path.write_bytes(damaged)
    assert f"whole {kind} data; found damaged data" in fault(path)


def test_an_excel_workbook_has_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "runs.xlsx"
    path.write_bytes(zipped({"[Content_Types].xml": b"", "xl/workbook.xml": b""}))
    assert "found an Excel workbook. Save the sheet as CSV." in fault(path)


def test_zip_archives_with_several_files(tmp_path: Path) -> None:
    path = tmp_path / "runs.zip"
    path.write_bytes(zipped({"a.tsv": TEXT, "b.tsv": TEXT[:9]}))
    assert "a zip archive of one file; found 2 files: 'a.tsv, b.tsv'. Name a member: zip://MEMBER::FILE" in fault(path)
    assert read(f"zip://b.tsv::{path}") == TEXT[:9]
    assert find_runs([f"zip://*.tsv::{path}"]) == [f"zip://a.tsv::{path}", f"zip://b.tsv::{path}"]
    assert "nothing there" in fault(f"zip://c.tsv::{path}")


@pytest.mark.parametrize("folder", ["", "sub/"])
def test_a_run_in_an_archive_is_named_after_its_member(tmp_path: Path, folder: str) -> None:
    (tmp_path / "sub").mkdir()
    path = tmp_path / f"{folder}z.zip"
    table = b"query,document,start,duration,score\nq,d,1,1,1\n"
    path.write_bytes(zipped({"n1.csv": table, "x/n2.csv": table}))
    for member, system in (("n1.csv", "n1"), ("x/n2.csv", "n2")):
        (piece,) = read_run(f"zip://{member}::{path}", Problems())
        assert piece.header.system == system
    assert system_of_file("simplecache::s3://bucket/x/run.csv.gz") == "run"
    assert system_of_file(f"zip://::{tmp_path}/alone.csv") == "alone"
    assert system_of_file("a::b.csv") == "a::b"


def test_a_zip_archive_made_by_finder(tmp_path: Path) -> None:
    path = tmp_path / "runs.zip"
    path.write_bytes(zipped({"a.tsv": TEXT, "__MACOSX/._a.tsv": b"\0\5\x16\7"}))
    assert read(str(path)) == TEXT


def test_folders_in_archives(tmp_path: Path) -> None:
    path = tmp_path / "runs.zip"
    path.write_bytes(zipped({"x/a.tsv": b"query,document,score\n", "x/b.tsv": b"query,document,score\n"}))
    assert find_runs([f"zip://x::{path}"]) == [f"zip://x/a.tsv::{path}", f"zip://x/b.tsv::{path}"]


def test_a_tar_archive_has_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(TEXT)
    for name, mode in (("x.tar", "w"), ("x.tgz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as archive:  # type: ignore[call-overload]
            archive.add(tmp_path / "a.tsv", "a.tsv")
        with pytest.raises(InputError, match=r"found a tar archive\. Unpack it, or name a member"):
            sniff(str(tmp_path / name))
    assert read(f"tar://a.tsv::{tmp_path / 'x.tar'}") == TEXT
    damaged = f"tar://a.tsv::{tmp_path / 'x.tgz'}"
    with pytest.raises(ArchiveError, match="cannot be opened: "):
        Storage(damaged).exists("manifest")


HEADED = {"query": ["K1", "K2"], "document": ["a", "b"], "start": [1.5, 2.5], "duration": [0.5, 0.5], "score": [0.9, 2]}
ROWS = list(zip(*HEADED.values(), strict=True))


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(HEADED), sink)
    return sink.getvalue()


FORMS = {
    "csv": b"query,document,start,duration,score\nK1,a,1.5,0.5,0.9\nK2,b,2.5,0.5,2\n",
    "json": b"".join(json.dumps(dict(zip(HEADED, row, strict=True))).encode() + b"\n" for row in ROWS),
    "kaldi": b"K1 a 1.5 2.0 0.9\nK2 b 2.5 3.0 2\n",
    "ctm": b"a 1 1.5 0.5 K1 0.9\nb 1 2.5 0.5 K2 2\n",
    "kwslist": b'<kwslist kwlist_filename="k" language="" system_id="x">'
    b'<detected_kwlist kwid="K1" search_time="1" oov_count="0">'
    b'<kw file="a" channel="1" tbeg="1.5" dur="0.5" score="0.9" decision="NO"/></detected_kwlist>'
    b'<detected_kwlist kwid="K2" search_time="1" oov_count="0">'
    b'<kw file="b" channel="1" tbeg="2.5" dur="0.5" score="2" decision="NO"/></detected_kwlist></kwslist>',
    "parquet": parquet(),
}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstd,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda content: zipped({"run": content}),
}


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_runs_in_every_compression(tmp_path: Path, form: str, kind: str) -> None:
    path = tmp_path / "run"
    path.write_bytes(COMPRESS[kind](FORMS[form]))
    problems = Problems()
    (piece,) = read_run(str(path), problems)
    problems.raise_if_any()
    rows = zip(piece.query, piece.document, piece.start, piece.duration, piece.score, strict=True)
    found = [(piece.queries[q], piece.documents[d], *times, score) for q, d, *times, score in rows]
    assert found == [("K1", "a", 15_000, 5_000, 0.9), ("K2", "b", 25_000, 5_000, 2.0)]


def test_a_damaged_parquet_file_in_gzip(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet.gz"
    path.write_bytes(gzip.compress(FORMS["parquet"][:-9]))
    problems = Problems()
    assert not list(read_run(str(path), problems))
    with pytest.raises(InputError, match=r"run\.parquet\.gz: expected whole Parquet data"):
        problems.raise_if_any()


def test_text_that_begins_as_compressed_data(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"BZh91 Q0 d 1 2.5 s\n")
    assert read(path) == path.read_bytes()


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "x"
    damaged = bytearray(COMPRESSED["gzip"])
    damaged[-6] ^= 1
    path.write_bytes(damaged)
    assert "damaged data (zlib inflate failed: incorrect data check)" in fault(path)


@pytest.mark.parametrize("content", [b"", *EMPTY.values()], ids=["plain", *EMPTY])
def test_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert "an empty file" in fault(path)


def test_places_that_cannot_be_read(tmp_path: Path) -> None:
    assert "nothing there" in fault(tmp_path / "absent")
    assert "a folder" in fault(tmp_path)
    assert "nothing there" in fault("memory://absent")
    assert "Protocol not known" in fault("nowhere://x")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert "no permission" in fault(tmp_path / "x")


@pytest.mark.parametrize("kind", COMPRESSED)
def test_urls(kind: str) -> None:
    fsspec.filesystem("memory").pipe("/opening/x", COMPRESSED[kind])
    assert read("memory://opening/x") == TEXT


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_a_bomb_is_left_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(files, "EXPANDED_AT_EASE", 1 << 20)
    path = tmp_path / "x"
    path.write_bytes(compress(b"\n" * (3 << 20)))
    found = r"expand at most 100 times, or to 1 MiB; found [0-9,]+ bytes that expand to 1,[0-9,]+ or more"
    with pytest.raises(InputError, match=found):
        read(path)
    monkeypatch.setenv("SWSDASK_MAX_EXPANSION", "100_000")
    assert read(path) == b"\n" * (3 << 20)
    monkeypatch.setenv("SWSDASK_MAX_EXPANSION", "much")
    with pytest.raises(SettingsError, match="SWSDASK_MAX_EXPANSION: expected a number; found 'much'"):
        read(path)


def test_a_parquet_file_of_one_long_text_is_left_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "EXPANDED_AT_EASE", 1 << 20)
    columns = {"query": ["q" * (3 << 20)], "document": ["d"], "start": [1.0], "duration": [0.5], "score": [0.1]}
    written = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", **written)
    problems = Problems()
    assert not list(read_run(str(tmp_path / "x.parquet"), problems))
    assert [each.expected for each in problems] == ["data that expand at most 100 times, or to 1 MiB"]


ROW = {"query": "q", "document": "d", "start": 1.0, "duration": 0.5, "score": 0.1}


def test_rows_that_repeat_a_long_text_are_left_unread(tmp_path: Path) -> None:
    for kind in (pa.string(), pa.large_string()):
        columns = {name: [value] * 60_000 for name, value in ROW.items()}
        columns["score"] = (
            pa.array(["1" * 200_000], kind).take(pa.array([0] * 6)).dictionary_encode().take([0] * 60_000)
        )
        pq.write_table(pa.table(columns), tmp_path / "x.parquet", compression="zstd", write_statistics=False)
        problems = Problems()
        assert not sum(len(piece) for piece in read_run(str(tmp_path / "x.parquet"), problems))
        assert [each.expected for each in problems] == ["data that expand at most 100 times, or to 128 MiB"]


def test_a_parquet_footer_that_understates_sizes_is_not_believed(tmp_path: Path) -> None:
    def varint(number: int, width: int) -> bytes:
        return bytes(number * 2 >> 7 * place & 127 | 128 * (place + 1 < width) for place in range(width))

    path = tmp_path / "x.parquet"
    columns = {name: [value] for name, value in ROW.items()} | {"score": ["1" * (130 << 20)]}
    pq.write_table(pa.table(columns), path, compression="zstd", use_dictionary=False, write_statistics=False)
    group = pq.read_metadata(path).row_group(0)
    content = path.read_bytes()
    for size in (group.total_byte_size, group.column(4).total_uncompressed_size):
        assert content.count(varint(size, 5)) == 1
        content = content.replace(varint(size, 5), varint(100, 5))
    path.write_bytes(content)
    assert pq.read_metadata(path).row_group(0).total_byte_size == 100
    problems = Problems()
    assert not sum(len(piece) for piece in read_run(str(path), problems))
    assert [each.expected for each in problems] == ["data that expand at most 100 times, or to 128 MiB"]


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_archive_that_expands_in_one_step_is_left_unread(tmp_path: Path, compression: int) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("a", b"\n" * (3 << 20))
    for url in (str(path), f"zip://a::{path}"):
        with pytest.raises(InputError, match=f"expected a zip archive compressed by deflate; .* {compression}"):
            read(url)


def test_a_bomb_in_an_archive_is_left_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "EXPANDED_AT_EASE", 1 << 20)
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"\n" * (3 << 20))
        archive.writestr("b", b"query,document,score\n")
    with pytest.raises(InputError, match="expand at most 100 times, or to 1 MiB"):
        read(f"zip://a::{path}")
    assert read(f"zip://b::{path}") == b"query,document,score\n"


def test_what_expands_as_text_does_is_read_however_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "EXPANDED_AT_EASE", 1 << 20)
    path = tmp_path / "x"
    text = b"".join(b"%d\n" % (number * 7919 % 1_000_003) for number in range(500_000))
    path.write_bytes(gzip.compress(text))
    assert read(path) == text


def _reads(path: str) -> Callable[[], int]:
    return lambda: sum(len(piece) for piece in read_run(path, Problems()))


def test_a_compressed_run_takes_the_memory_of_the_plain_one(tmp_path: Path) -> None:
    rows = (f"q{n % 499},d{n % 997},{n % 600},0.5,{n * 7919 % 100_003 / 1e5}\n" for n in range(50_000))
    text = b"query,document,start,duration,score\n" + "".join(rows).encode() * 80
    (tmp_path / "plain.csv").write_bytes(text)
    plain = cost(_reads, str(tmp_path / "plain.csv"), repeats=1)
    for compress in (partial(gzip.compress, compresslevel=1), zstd):
        (tmp_path / "compressed").write_bytes(compress(text))
        found = cost(_reads, str(tmp_path / "compressed"), repeats=1)
        assert found.result == plain.result == 4_000_000
        assert found.peak < plain.peak + len(text) // 3


def test_reading_in_small_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(COMPRESSED["zstd"])
    with open_bytes(str(path)) as source:
        assert b"".join(iter(lambda: source.read(7), b"")) == TEXT
    with open_bytes(str(path)) as source:
        assert source.readline() == b"one line\n"


def test_a_path_needs_no_fsspec(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(COMPRESSED["gzip"])
    code = (
        "import sys; from swsdask.formats.files import open_bytes\n"
        f"with open_bytes({str(path)!r}) as source: source.read()\n"
        "sys.exit('fsspec' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("store", ["", "memory:///hushhush"])
def test_folders_in_a_folder_of_runs_are_reported(
    tmp_path: Path, store: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store or str(tmp_path)
    for name in ("a.tsv", "b/c.tsv", ".hidden/d.tsv", "logs/x.txt"):
        with fsspec.open(f"{folder}/{name}", "w", auto_mkdir=True) as file:
            file.write("query\tdocument\tstart\tduration\tscore\nq\td\t0\t1\t0.5\n")
    assert find_runs([folder]) == [f"{folder}/a.tsv"]
    (record,) = caplog.records
    assert record.getMessage() == f"{folder}: not searched for runs: b, logs; name them too, or use a glob"
    monkeypatch.setattr(safe_text, "_known", {"hushhush"})
    find_runs([folder])
    assert ("***: not searched" in caplog.messages[1]) == bool(store)


def test_a_missing_folder_above_a_file_is_named(tmp_path: Path) -> None:
    named = f"there is no folder {tmp_path / 'a'}. Check"
    assert named in fault(tmp_path / "a/b/run.csv")
    for place in (tmp_path / "a/b/*.csv", tmp_path / "a/b*/*.csv"):
        with pytest.raises(InputError, match=re.escape(f"found none: {named}")):
            find_runs([str(place)])
    assert "found nothing there. Check" in fault(tmp_path / "run.csv")


def test_a_missing_bucket_is_named(s3_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fsspec.config.conf, "s3", s3_server)
    fsspec.filesystem("s3", **s3_server).mkdir("emptied")
    assert "found nothing there: there is no bucket missing. Check" in fault("s3://missing/a/run.csv")
    assert "found nothing there. Check" in fault("s3://emptied/a/run.csv")
    with pytest.raises(InputError, match=r"found none: there is no bucket missing\. Check"):
        find_runs(["s3://missing/a/*.csv"])
    for inbox in ("s3://missing", "s3://missing/a", "s3://missing/*.csv"):
        with pytest.raises(InputError, match=r"there: there is no bucket missing\. Check .* permissions\. Noth"):
            look([inbox])
    with pytest.raises(InputError, match=r"found nothing there\. .* a README keeps one"):
        look(["s3://emptied/a"])
