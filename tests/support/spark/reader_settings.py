"""The settings that Spark's readers of files look at, from the compiled classes of a release."""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.spark.class_files import PUTS, ClassFile

_SQL = "org/apache/spark/sql/"
_JARS = re.compile(r"spark-(avro|catalyst|core|sql|sql-api|hive)_[\d.]+-[\d.]+\.jar")
# What reads files, finds them, and plans that. Not what streams or runs commands.
_READERS = re.compile(
    _SQL + r"(avro/|catalyst/(FileSourceOptions|(avro|csv|json|xml|util|expressions/variant)/|"
    r"catalog/External)|execution/(DataSourceScanExec|FileSource|HiveResult|PartitionedFile|"
    r"vectorized/|datasources/([A-Z]|(binaryfile|csv|json|orc|parquet|text|xml)/|"
    r"v2/(File|(avro|csv|json|orc|parquet|text|xml)/))))|org/apache/spark/util/HadoopFSUtils"
)
_CONF = _SQL + "internal/SQLConf"
# Objects whose fields are the entries of settings.
_ENTRIES = (f"{_CONF}$", f"{_SQL}internal/StaticSQLConf$")
# Interfaces through which readers ask for settings as well.
_ACCESS = (_CONF, f"{_SQL}internal/SqlApiConf")
_STRING = "Ljava/lang/String;"
_BUILDERS = re.compile("build(Static)?Conf(FromConfigFile)?")
_NAMES = f"{_SQL}internal/SqlApiConfHelper$"


def settings_of_readers(jars: Path) -> dict[str, set[str]]:
    """Return the names of settings, each with the classes that look at it.

    Args:
        jars: The folder of a release's jars.
    """
    classes = _classes(jars)
    texts = _texts_of(classes)
    entries: dict[str, str] = {}
    for owner in _ENTRIES:
        entries |= _entries_of(classes[owner], texts)
    accessors = _accessors_of(classes[_CONF], entries)
    names = set(entries.values())
    uses: dict[str, set[str]] = defaultdict(set)
    for reader, file in classes.items():
        if not _READERS.match(reader):
            continue
        settings = names.intersection(file.texts())
        for member in file.members():
            if member.owner in _ENTRIES and member.name in entries:
                settings.add(entries[member.name])
            elif member.owner in _ACCESS:
                settings |= accessors.get(member.name, set())
        for name in settings:
            uses[name].add(reader.rpartition("/")[2].partition("$")[0])
    return dict(uses)


def _classes(jars: Path) -> dict[str, ClassFile]:
    classes = {}
    for jar in jars.iterdir():
        if not _JARS.fullmatch(jar.name):
            continue
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                owner = name.removesuffix(".class")
                is_reader = owner in (*_ENTRIES, *_ACCESS, _NAMES) or _READERS.match(owner)
                if is_reader and owner != name:
                    classes[owner] = ClassFile(archive.read(name))
    return classes


def _texts_of(classes: Mapping[str, ClassFile]) -> dict[str, str]:
    """Return the names of settings that are constants elsewhere, by the constants' names."""
    if _NAMES not in classes:
        return {}
    texts, last = {}, ""
    for _, steps in classes[_NAMES].methods():
        for step in steps:
            last = step.text or last
            if step.code in PUTS and step.member and step.member.type == _STRING:
                texts[step.member.name] = last
    return texts


def _entries_of(file: ClassFile, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of an object that are entries of settings, with the settings' names.

    Names that are put together at run time are not known, and named by the field.
    """
    entries = {}
    for method, steps in file.methods():
        if method not in ("<init>", "<clinit>"):
            continue
        text = name = None
        for step in steps:
            if step.text:
                text = step.text
            elif step.member and step.member.name in texts:
                text = texts[step.member.name]
            elif step.member and _BUILDERS.fullmatch(step.member.name):
                name = text
            elif step.code in PUTS and step.member and "ConfigEntry" in step.member.type:
                is_setting = name is not None and name.startswith("spark.")
                entries[step.member.name] = name if is_setting and name else step.member.name
                name = None
    return entries


def _accessors_of(file: ClassFile, entries: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the methods of `SQLConf` with the settings that they look at."""
    direct: dict[str, set[str]] = defaultdict(set)
    calls: dict[str, set[str]] = defaultdict(set)
    for method, steps in file.methods():
        for step in steps:
            if step.member and step.member.owner in _ENTRIES and step.member.name in entries:
                direct[method].add(entries[step.member.name])
            elif step.member and step.member.owner == _CONF:
                calls[method].add(step.member.name)

    def reached(method: str, visits: set[str]) -> Iterator[str]:
        if method not in visits:
            visits.add(method)
            yield from direct.get(method, ())
            for callee in calls.get(method, ()):
                yield from reached(callee, visits)

    return {method: set(reached(method, set())) for method in {*direct, *calls}}
