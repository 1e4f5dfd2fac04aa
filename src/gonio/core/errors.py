"""What gonio raises: one sentence that says who, what was found, what was wanted, what to do."""


class GonioError(ValueError):
    """Any complaint of gonio's about what it was given, in one line."""

    def __init__(self, message: str = "") -> None:
        super().__init__(" ".join(str(message).splitlines()))


class LoadError(GonioError):
    """A file or object from which no head can be read."""


class LabelError(GonioError, KeyError):
    """A label that the head does not have, or has more than once."""

    __str__ = ValueError.__str__  # KeyError would print the sentence in quotes


class MissingExtraError(GonioError, ImportError):
    """An optional part that is needed now and is not installed."""


def missing_extra(who: str, package: str, extra: str) -> MissingExtraError:
    """The error for an optional part that is not installed, with the command that installs it."""
    return MissingExtraError(
        f"{who}: the package {package!r} is needed for this and is not installed; run: pip install 'gonio[{extra}]'"
    )
