"""The verdict of the page."""

from tests.render.page.parts.conftest import Made


def test_each_sentence_has_its_evidence(made: Made) -> None:
    """Rows and lines, without folders."""
    sentences = made["verdict"]["sentences"]
    said = " ".join(text for text, _ in sentences)
    assert "GPU idle" in sentences[0][0]
    assert "Top line model.py:30" in said
    assert all(evidence for _, evidence in sentences)
    assert "/home" not in str(sentences)
