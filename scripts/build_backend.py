"""Builds the wheel as setuptools does, once the console's packages are where the wheel takes them and their licences
from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

sys.path.insert(0, str(Path(__file__).parent))

import ui_packages


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    more = [] if ui_packages.npm() else [ui_packages.NODE_WHEEL]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *more]


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    ui_packages.fetch()
    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    ui_packages.fetch()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
