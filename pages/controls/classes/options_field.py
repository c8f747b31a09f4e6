"""The options of a step in the form of a draft, a line each."""

from pages.controls.state.session import widget_value

OPTIONS = "class options"


def options_said() -> tuple[str, ...]:
    lines = (line.strip() for line in str(widget_value(OPTIONS, "")).splitlines())
    return tuple(line for line in lines if line)
