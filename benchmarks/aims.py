"""What the benchmarks are held to: one line for each aim, and exit code 1 when one is missed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Aim:
    """A figure and the value it must reach, or must not exceed when `at_most`."""

    name: str
    value: float
    target: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target

    def __str__(self) -> str:
        return f"aim {self.name} {self.value:.3g} {self.target:g} {'met' if self.met else 'missed'}"


def report(aims: list[Aim]) -> int:
    """Print the aims last; the exit code."""
    for aim in aims:
        print(aim, flush=True)
    return 0 if all(aim.met for aim in aims) else 1
