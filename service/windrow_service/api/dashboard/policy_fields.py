"""The fields of a policy in the form that changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from windrow_core.models import PolicyDefinition
from windrow_core.models.field_texts import POLICY_FIELDS, help_of
from windrow_service.api.dashboard.refused_fields import RefusedFieldError

FIELDS = [one for one in POLICY_FIELDS if not one.of_retention]
HINTS = {
    one.name: help_of(one.name, PolicyDefinition.model_fields[one.name], "several with commas")
    for one in FIELDS
}


def texts_of(definition: PolicyDefinition) -> dict[str, str]:
    """Return the texts of a policy's fields; empty ones for those that it does not say."""
    return {
        field.name: "" if (value := getattr(definition, field.name)) is None else field.write(value)
        for field in FIELDS
    }


def definition_from(form: Mapping[str, str], before: PolicyDefinition) -> PolicyDefinition:
    """Return the policy of a form; what the form does not have stays as it was.

    Args:
        form: The texts of its fields.
        before: The policy until now.

    Raises:
        RefusedFieldError: A text cannot be used.
    """
    values: dict[str, Any] = dict(before)
    texts = texts_of(before)
    values["enabled"] = form.get("enabled", "yes") == "yes"
    for field in FIELDS:
        text = form.get(field.name, "").replace("\r\n", "\n").strip()
        # A filter may be a tree, which its text only shows.
        if text == texts[field.name]:
            continue
        try:
            values[field.name] = field.read(text) if text else None
        except ValueError as error:
            raise RefusedFieldError(field.name, str(error)) from error
    try:
        return PolicyDefinition(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        raise RefusedFieldError(name, str(first["msg"])) from error
