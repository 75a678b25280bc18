import pytest

from swsdask.model.units import document_fault, document_id, id_fault


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("audio/SYN_0000_A.sph", "SYN_0000_A"),
        ("d1.wav", "d1"),
        ("d1.WAV", "d1"),
        ("d1.wav.wav", "d1.wav"),
        (".wav", ".wav"),
        ("plain", "plain"),
        ("a.b", "a.b"),
    ],
)
def test_document_ids_lose_directory_and_one_extension(filename: str, expected: str) -> None:
    assert document_id(filename) == expected


@pytest.mark.parametrize("bad", ["", "  ", "../../x", "a/b", "a\\b", "..", "a\x00b", "a\nb", "x" * 501])
def test_ids_that_are_refused(bad: str) -> None:
    assert id_fault(bad) is not None


@pytest.mark.parametrize("good", ["KW-01", "Größe", "a b", "...", "x.y", "a:b", "<script>"])
def test_ids_that_are_fine(good: str) -> None:
    assert id_fault(good) is None


@pytest.mark.parametrize(
    ("filename", "fine"), [("Audio/x.wav", True), ("/a/b/c", True), ("../x", False), ("a/..", False)]
)
def test_documents_may_have_folders_but_not_climb(filename: str, fine: bool) -> None:
    assert (document_fault(filename) is None) == fine
