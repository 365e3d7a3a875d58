"""NVIDIA's cards by compute capability, written so that a driver's own name of the card holds the name.

Sources, held against them 2026-11-30: https://developer.nvidia.com/cuda-gpus and
https://developer.nvidia.com/cuda-legacy-gpus; cards missing there by the chip they are made of.
A longer name stands beside a shorter one that it holds wherever the two are different chips.
"""

from __future__ import annotations


def _series(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{prefix} {name}" for name in names)


CC_60 = ("Tesla P100", "Quadro GP100")

CC_61 = (
    *_series("Tesla", "P4", "P6", "P40"),
    *_series("GTX", "1050", "1050 Ti", "1060", "1070", "1070 Ti", "1080", "1080 Ti"),
    "GT 1030",
    "TITAN Xp",
    # "GTX TITAN X" without the bracket is a Maxwell card.
    "TITAN X (Pascal)",
    *_series("Quadro", "P400", "P500", "P520", "P600", "P620", "P1000", "P2000", "P2200", "P3000"),
    *_series("Quadro", "P3200", "P4000", "P4200", "P5000", "P5200", "P6000"),
    *("MX150", "MX230", "MX250", "MX330", "MX350"),
)

CC_70 = ("V100", "V100S", "TITAN V", "Quadro GV100")

CC_72 = ("Xavier", "Jetson AGX Xavier", "Jetson Xavier NX")

CC_75 = (
    "Tesla T4",
    *("T4", "T4G", "T10", "T40"),
    *_series("RTX", "2060", "2060 SUPER", "2070", "2070 SUPER", "2080", "2080 SUPER", "2080 Ti"),
    *_series("GTX", "1630", "1650", "1650 SUPER", "1650 Ti", "1660", "1660 SUPER", "1660 Ti"),
    "TITAN RTX",
    *_series("Quadro RTX", "3000", "4000", "5000", "6000", "8000"),
    *("T400", "T500", "T550", "T600", "T1000", "T1200", "T2000"),
    *("MX450", "MX550"),
    *_series("CMP", "30HX", "40HX", "50HX"),
)

CC_80 = ("A100", "A100X", "A30", "A30X", "A800", "CMP 170HX")

CC_86 = (
    # An Ampere chip (GA107) in spite of the number.
    "RTX 2050",
    *_series("RTX", "3050", "3050 Ti", "3060", "3060 Ti", "3070", "3070 Ti", "3080", "3080 Ti", "3090", "3090 Ti"),
    *("A10", "A10G", "A10M", "A16", "A2", "A40"),
    *_series("RTX", "A400", "A500", "A1000", "A2000", "A3000", "A4000", "A4500", "A5000", "A5500", "A6000"),
    "MX570",
    *_series("CMP", "70HX", "90HX"),
)

CC_87 = ("Orin", "Jetson AGX Orin", "Jetson Orin NX", "Jetson Orin Nano")

CC_89 = (
    *_series("RTX", "4050", "4060", "4060 Ti", "4070", "4070 SUPER", "4070 Ti", "4070 Ti SUPER"),
    *_series("RTX", "4080", "4080 SUPER", "4090", "4090 D"),
    *("L2", "L4", "L20", "L40", "L40G", "L40S"),
    *_series("RTX", "500 Ada", "1000 Ada", "2000 Ada", "2000E Ada", "3000 Ada", "3500 Ada", "4000 Ada"),
    *_series("RTX", "4000 SFF Ada", "4500 Ada", "5000 Ada", "5880 Ada", "6000 Ada"),
)

CC_90 = ("H100", "H100 NVL", "H200", "H20", "H800", "GH200")

CC_100 = ("B100", "B200", "GB200")

CC_103 = ("B300", "GB300")

CC_110 = ("NVIDIA Thor", "Jetson AGX Thor", "Jetson Thor", "Drive AGX Thor", "Jetson T5000", "Jetson T4000")

CC_120 = (
    *_series("RTX", "5050", "5060", "5060 Ti", "5070", "5070 Ti", "5080", "5090", "5090 D"),
    *_series("RTX PRO", "500", "1000", "2000", "3000", "4000", "4500", "5000", "6000", "6000D"),
    "RTX 6000D",
)

CC_121 = ("GB10", "DGX Spark")
