"""A stand-in for pynvml: any answer may be a value, or an exception to raise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

GIB = 1 << 30


class NVMLError(Exception):
    """As pynvml's: a code, and a text that the library is asked for."""

    def __init__(self, value: int, text: str = "said by NVML") -> None:
        super().__init__(text)
        self.value = value


def memory(total: Any = 16 * GIB, used: Any = GIB, free: Any = 15 * GIB) -> SimpleNamespace:
    return SimpleNamespace(total=total, used=used, free=free)


def process(pid: Any, used: Any) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def card(number: int = 0, **other: Any) -> dict[str, Any]:
    """Answers of one card by the names of what is asked; a MIG card has ``parts``."""
    answers = {
        "UUID": f"GPU-{number:08x}-aaaa",
        "Name": "Tesla T4",
        "CudaComputeCapability": (7, 5),
        "MemoryInfo": memory(),
        "ComputeRunningProcesses": [],
        "GraphicsRunningProcesses": [],
        "MigMode": NVMLError(3),
        "parts": [],
    }
    return {**answers, **other}


def part(number: int, **other: Any) -> dict[str, Any]:
    answers = {
        "UUID": f"MIG-{number:08x}-bbbb",
        "Name": "NVIDIA A100 MIG 1g.5gb",
        "MemoryInfo": memory(5 * GIB, 0, 5 * GIB),
        "GpuInstanceId": 7 + number,
        "ComputeInstanceId": 0,
    }
    return {**answers, **other}


def cut(number: int = 0, parts: int = 2, **other: Any) -> dict[str, Any]:
    """A card with MIG on, whose third place is free."""
    listed = [part(10 * number + one) for one in range(parts)]
    return card(number, Name="NVIDIA A100", CudaComputeCapability=(8, 0), MigMode=[1, 1], parts=listed, **other)


class FakeNvml:
    """Answers what :func:`devices` asks, and notes that the library was let go."""

    def __init__(self, *cards: Any, **answers: Any) -> None:
        self.cards = cards
        self.open = 0
        self.answers: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlDeviceGetCount": len(cards),
            "nvmlSystemGetDriverVersion": "570.86.15",
            "nvmlSystemGetCudaDriverVersion_v2": 12080,
            "nvmlSystemGetCudaDriverVersion": 12080,
            "nvmlShutdown": None,
            **answers,
        }
        self.names: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            if name == "nvmlInit":
                answer = self._answer(self.answers[name])
                self.open += 1
                return answer
            if name == "nvmlShutdown":
                self.open -= 1
            if name in self.answers:
                return self._answer(self.answers[name])
            if name == "nvmlDeviceGetHandleByIndex":
                return self._answer(self.cards[arguments[0]])
            if name == "nvmlSystemGetProcessName":
                return self._answer(self.names.get(arguments[0], NVMLError(4)))
            if name == "nvmlDeviceGetMaxMigDeviceCount":
                return len(arguments[0]["parts"]) + 1
            if name == "nvmlDeviceGetMigDeviceHandleByIndex":
                parts = arguments[0]["parts"]
                return parts[arguments[1]] if arguments[1] < len(parts) else self._answer(NVMLError(6))
            wanted = name.removeprefix("nvmlDeviceGet")
            if wanted not in arguments[0]:
                raise AttributeError(name)
            return self._answer(arguments[0][wanted])

        return call

    def _answer(self, answer: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer
