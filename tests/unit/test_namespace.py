"""What completion and `help` show of the package and of a client."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys

import pytest

import windrow
from tests.support.documents.reference import public_functions
from windrow_calls.coordinator import OF_PROGRAMS


def test_the_package_lists_what_people_use() -> None:
    names = [name for name in dir(windrow) if not name.startswith("_")]

    assert names == [
        *("Client", "SplitPlan", "WindrowError", "accelerate", "connect", "embedded", "errors"),
        *("models", "register", "spark"),
    ]
    assert all(getattr(windrow, name) is not None for name in names)


def test_importing_the_package_loads_nothing_but_the_version() -> None:
    code = "import sys, windrow; dir(windrow); print(*(n for n in sys.modules if 'windrow' in n))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) == {"windrow", "windrow_core", "windrow_core.version"}


def test_a_name_that_the_package_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        windrow.conect  # noqa: B018


def test_help_explains_the_package_and_a_client() -> None:
    text = pydoc.plain(pydoc.render_doc(windrow))

    for word in ("windrow.connect()", "embedded", "accelerate", "help(windrow.Client)"):
        assert word in text
    assert "register_table" in (inspect.getdoc(windrow.Client) or "")


def test_whatever_completion_offers_of_a_client_has_an_example_that_a_test_runs() -> None:
    functions = public_functions().values()
    tried = {name for section in functions for name in section if name.startswith("client.")}

    with windrow.connect("http://127.0.0.1:1", check=False) as client:
        names = [name for name in dir(client) if not name.startswith("_")]
        calls = {f"client.{name}" for name in names if callable(getattr(client, name))}

    assert calls == tried


def test_a_client_does_not_offer_the_calls_of_programs_but_has_them() -> None:
    with windrow.connect("http://127.0.0.1:1", check=False) as client:
        names = dir(client)

        assert OF_PROGRAMS.isdisjoint(names)
        assert all(callable(getattr(client, name)) for name in OF_PROGRAMS)
    assert {"read", "scan", "write", "compact", "warm", "tables"} <= set(names)
