from pyprof.capture.replacement import replace_attributes


class Base:
    def inherited(self) -> str:
        return "theirs"


class Home(Base):
    def own(self) -> str:
        return "theirs"


def test_attributes_are_restored_where_they_were() -> None:
    def ours(_: object) -> str:
        return "ours"

    with replace_attributes((Home, "own", ours), (Home, "inherited", ours)):
        assert Home().own() == Home().inherited() == "ours"
    assert Home().own() == Home().inherited() == "theirs"
    assert "inherited" not in vars(Home)
