"""A version string that also compares as a version: ``torch.__version__ >= "2.8"``, ``>= (2, 8)``."""
import re

__all__ = ["TorchVersion"]


class InvalidVersion(ValueError):
    pass


_FORM = re.compile(r"v?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|rc|alpha|beta|c|pre|preview)[-_.]?(\d*))?(?:[-_.]?(post|rev|r)[-_.]?(\d*))?"
                   r"(?:[-_.]?dev[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?", re.IGNORECASE)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _key(text):
    """The order of versions that PEP 440 lays down, as a tuple."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidVersion(f"Invalid version: '{text}'")
    release, stage, stage_n, post, post_n, dev, local = match.groups()
    numbers = [int(n) for n in release.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    is_dev = re.search(r"dev", text, re.IGNORECASE) is not None
    if stage:
        pre = (_STAGES[stage.lower()], int(stage_n or 0))
    else:
        pre = (-1, 0) if is_dev and not post else (9, 0)
    after = (1, int(post_n or 0)) if post else (0, 0)
    development = (0, int(dev or 0)) if is_dev else (1, 0)
    parts = tuple((1, int(p), "") if p.isdigit() else (0, 0, p.lower()) for p in re.split(r"[-_.]", local)) if local else ()
    return tuple(numbers), pre, after, development, parts


class TorchVersion(str):
    """str that compares by version with strings, tuples and other versions; unparsable operands compare as plain strings."""

    @staticmethod
    def _other(value):
        if isinstance(value, str):
            return value
        if isinstance(value, (tuple, list)):
            return ".".join(str(v) for v in value)
        if hasattr(value, "public") and hasattr(value, "release"):
            return str(value)
        raise ValueError(f"can't convert {value} to Version")

    def _compare(self, other, method):
        text = self._other(other)
        try:
            return getattr(_key(str(self)), method)(_key(text))
        except InvalidVersion:
            return getattr(str(self), method)(text)

    def __lt__(self, other):
        return self._compare(other, "__lt__")

    def __le__(self, other):
        return self._compare(other, "__le__")

    def __gt__(self, other):
        return self._compare(other, "__gt__")

    def __ge__(self, other):
        return self._compare(other, "__ge__")

    def __eq__(self, other):
        return self._compare(other, "__eq__")

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__
