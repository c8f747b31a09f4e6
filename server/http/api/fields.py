"""Fields of a request, each declared once: what is checked, and what the description says, follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from reprlib import repr as shortened
from typing import Any, Literal

from engine.json_text import parse_json

Kind = Literal["string", "integer", "number", "boolean", "object", "strings", "integers", "objects"]
NAMES: dict[Kind, str] = {
    "string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "object": "a table", "strings": "a list of texts", "integers": "a list of whole numbers",
    "objects": "a list of tables",
}  # fmt: skip
LIMITS = {"string": "Length", "integer": "imum", "number": "imum"}  # of JSON Schema, behind "min" and "max"
CODES = {401: "invalid_api_key", 404: "model_not_found", 413: "too_large", 429: "rate_limit_exceeded"}


class Refused(ValueError):
    """A request that is not answered; the sentence says what was expected, what came, and what to do."""

    def __init__(self, message: str, status: int = 400, field: str | None = None) -> None:
        super().__init__(message.encode("utf-8", "backslashreplace").decode())  # it may quote what is no Unicode
        self.status, self.field = status, field

    @property
    def body(self) -> dict[str, Any]:
        """As OpenAI tells errors."""
        kind = {401: "authentication_error", 429: "rate_limit_error"}.get(self.status, "invalid_request_error")
        code = CODES.get(self.status, "invalid_value")
        return {"error": {"message": str(self), "type": kind, "param": self.field, "code": code}}


@dataclass(frozen=True)
class Field:
    """Value of one of `kinds`. `least` and `most` bound a number, the characters of a text and the length of a list;
    null is `default`. What is not `listed` is taken because programs send it, and can say one thing only."""

    about: str
    kinds: tuple[Kind, ...]
    default: Any = None
    least: float = 0
    most: float = inf
    required: bool = False
    listed: bool = True

    def read(self, name: str, value: Any) -> Any:
        """Raises Refused for any other value."""
        if value is None and not self.required:
            return self.default
        if not any(is_of(kind, value) for kind in self.kinds):
            must = " or ".join(NAMES[kind] for kind in self.kinds)
            raise Refused(f"{name} must be {must}, got {shortened(value)}: {self.about}.", field=name)
        size = value if isinstance(value, int | float) else len(value)
        if not self.least <= size <= self.most:
            be = "be" if size is value else "have a length of"
            bounds = f"{self.least:,} to {self.most:,}" if self.most < inf else f"{self.least:,} or more"
            raise Refused(f"{name} must {be} {bounds}, got {size:,}; correct it, or leave it out.", field=name)
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """In JSON Schema."""
        forms = [self._form(kind) for kind in self.kinds]
        form = forms[0] if len(forms) == 1 else {"anyOf": forms}
        return form | {"description": self.about} | ({} if self.default is None else {"default": self.default})

    def _form(self, kind: Kind) -> dict[str, Any]:
        form: dict[str, Any] = {"type": kind}
        if kind in ("boolean", "object"):
            return form
        if kind.endswith("s"):
            form = {"type": "array", "items": {"type": kind.removesuffix("s")}}
        limit = LIMITS.get(kind, "Items")
        bounds = (("min", self.least), ("max", self.most))
        return form | {f"{side}{limit}": bound for side, bound in bounds if bound < inf}


Fields = Mapping[str, Field]


def is_of(kind: Kind, value: Any) -> bool:
    if kind in ("strings", "integers", "objects"):
        one: Any = kind.removesuffix("s")
        return isinstance(value, list) and all(is_of(one, part) for part in value)
    if kind == "number":
        return type(value) is int or (type(value) is float and isfinite(value))
    return type(value) is {"string": str, "integer": int, "boolean": bool, "object": dict}[kind]


def read_request(fields: Fields, body: bytes) -> dict[str, Any]:
    """Values of all fields. Raises Refused for what is no JSON, and for a field that is missing, wrong or unknown."""
    try:
        said = parse_json(body)
    except ValueError:
        raise Refused("the body must be JSON, and it does not read as that; send a table of fields.") from None
    if not isinstance(said, dict):
        raise Refused(f"the body must be a table of fields, got {shortened(said)}.")
    for name in said:
        if name not in fields:
            known = ", ".join(known for known, field in fields.items() if field.listed)
            raise Refused(f"there is no field {name[:80]!r} here; leave it out: the fields are {known}.")
    for name, field in fields.items():
        if field.required and said.get(name) is None:
            raise Refused(f"the field {name} must be there: {field.about}.", field=name)
    return {name: field.read(name, said.get(name)) for name, field in fields.items()}


def write_schema(fields: Fields) -> dict[str, Any]:
    """Of a body with these fields."""
    listed = {name: field.schema for name, field in fields.items() if field.listed}
    required = [name for name, field in fields.items() if field.required]
    return {"type": "object", "properties": listed, "required": required, "additionalProperties": False}
