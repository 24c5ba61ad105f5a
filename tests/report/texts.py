"""Numbers as the report's page shows them, made here from the JSON, so that tests can compare them with the page."""


def seconds(value: float | None) -> str:
    """Returns "81.8 µs" and the like; "?" of what is not known."""
    if value is None:
        return "?"
    us = value * 1e6
    if us < 1:
        return f"{us:.3f} µs"
    if us < 1000:
        return f"{us:.{2 if us < 10 else 1 if us < 100 else 0}f} µs"
    ms = us / 1000
    if ms < 10000:
        return f"{ms:.{3 if ms < 10 else 2 if ms < 100 else 1}f} ms"
    return f"{value:.1f} s"


def share(value: float | None) -> str:
    """Returns "12.5 %" of 0.125."""
    return "?" if value is None else f"{100 * value:.1f} %"


def number(text: str) -> float:
    """Returns the seconds or the share that such a text stands for."""
    value, _, unit = text.partition(" ")
    return float(value) * {"µs": 1e-6, "ms": 1e-3, "s": 1, "%": 0.01}[unit]


def operators(label: str) -> str:
    """Returns the operators of a partition as its row has them."""
    return " + ".join(name.removeprefix("nn.") for name in label.split("+"))
