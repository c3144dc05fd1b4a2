"""Windows of a loop: what torch.profiler's schedule says of each step, and nothing else."""

from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerAction

from pyprof.instrument.ranges.capture_range import RecordingWindows

_OFF = (ProfilerAction.NONE, ProfilerAction.WARMUP)
_ON = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


@given(st.lists(st.sampled_from([*_OFF, *_ON]), min_size=1, max_size=9))
def test_windows_follow_the_schedule(actions: list[ProfilerAction]) -> None:
    """A step is recorded exactly if the schedule says so; a window ends where it is saved."""
    heard: list[str] = []
    windows = RecordingWindows(
        lambda step: actions[step] if step < len(actions) else ProfilerAction.NONE,
        lambda: heard.append("["),
        lambda: heard.append("]"),
    )
    for step in range(len(actions)):
        heard.append(str(step))
        windows.step()
    windows.finish()
    expected = ""
    for step, action in enumerate(actions):
        after_save = step > 0 and actions[step - 1] is ProfilerAction.RECORD_AND_SAVE
        was_on = step > 0 and actions[step - 1] not in _OFF
        expected += "]" * (was_on and (action in _OFF or after_save))
        expected += "[" * (action not in _OFF and (not was_on or after_save)) + str(step)
    assert "".join(heard) == expected + "]" * (actions[-1] not in _OFF)


def test_preparation_before_a_window() -> None:
    """What warms up does so in the steps before its window."""
    heard: list[str] = []
    actions = [ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD]
    windows = RecordingWindows(
        actions.__getitem__,
        lambda: heard.append("start"),
        lambda: heard.append("stop"),
        lambda: heard.append("prepare"),
    )
    for step in range(2):
        heard.append(str(step))
        windows.step()
    windows.finish()
    assert heard == ["0", "prepare", "1", "start", "stop"]
