"""The answer of `pyprof summary` for a source."""

from pyprof.analysis.summary.composition import summary
from pyprof.analysis.summary.overview import summarise
from pyprof.answers.summary_answer import Summary
from pyprof.inputs.source import Source


def answered(source: Source, steps: str | None = None) -> Summary:
    return summary(summarise(source, steps))
