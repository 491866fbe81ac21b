"""Our few Java classes, compiled in the driver's JVM by the compiler that Spark ships."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

_SEQ, _IMMUTABLE_SEQ = "scala.collection.Seq", "scala.collection.immutable.Seq"
_NO_WORDS: Mapping[str, str] = {}


def compiled(
    jvm: Any, package: str, source: str, parent: Any, words: Mapping[str, str] = _NO_WORDS
) -> Any:
    """Return the compiler, after it has compiled a file of classes.

    Args:
        jvm: The driver's JVM.
        package: The Python package that contains the file.
        source: Name of the file.
        parent: Class loader of the classes that the file uses.
        words: Replacements for the words of a template.
    """
    template = resources.files(package).joinpath(source).read_text(encoding="utf-8")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(
        source_text(template, str(jvm.scala.util.Properties.versionNumberString()), words)
    )
    return compiler


def new_object(jvm: Any, package: str, source: str, parent: Any, name: str) -> Any:
    """Return a new object of the class `name`, after compiling its file; see `compiled`."""
    classes = compiled(jvm, package, source, parent).getClassLoader()
    return classes.loadClass(name).newInstance()


def source_text(template: str, scala: str, words: Mapping[str, str] = _NO_WORDS) -> str:
    """Return the text of classes for a version of Scala.

    Args:
        template: The text of their file.
        scala: The version, on which the JVM's name of Scala's `Seq` depends.
        words: Replacements for more words of the template.
    """
    words = {"SEQ": _SEQ if scala.startswith("2.12") else _IMMUTABLE_SEQ, **words}
    return re.sub(r"\b[A-Z]+\b", lambda word: words.get(word[0], word[0]), template)
