"""The figures by which the statistics were chosen, to hold new ones against: false alarms a day, delays in minutes; of other code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Earlier:
    """False alarms of harm and of benefit a day, and p50/p90 of the delays of +5, +10 and +20 %."""

    false: tuple[float | None, float | None] = (None, None)
    delays: str = ""


NOTHING = Earlier()

USUAL = {
    ("request", 5): 1.00,
    ("request", 15): 1.00,
    ("request", 60): 1.00,
    ("request", 240): 0.98,
    ("request", None): 0.77,
    ("cluster", 5): 1.00,
    ("cluster", 15): 1.00,
    ("cluster", 60): 1.00,
    ("cluster", 240): 0.86,
    ("cluster", None): 0.49,
}
PAIRED = {1: 0.58, 5: 0.37, 10: 0.35, 30: 0.41}
INTERVALS = {  # by asymptotic and block length: plain, with the long-run variance
    True: {5: (0.050, 0.028), 10: (0.052, 0.032), 30: (0.030, 0.036)},
    False: {5: (0.054, 0.026), 10: (0.036, 0.024), 30: (0.026, 0.030)},
}
ALARMS = {
    ("N1 base", 5): Earlier((0.010, 0.013), "145/335, 55/135, 25/50"),
    ("N1 base", 10): Earlier((0.003, 0.003), "150/320, 70/140, 40/60"),
    ("N2 rotating", 5): Earlier((0.033, 0.040), "145/390, 60/150, 25/60"),
    ("N2 rotating", 10): Earlier((0.023, 0.020), "170/330, 70/140, 40/70"),
    ("N3 heavy tail", 10): Earlier((0.000, 0.007), "240/500, 100/190, 50/100"),
    ("N4 one control, 4 req/min", 30): Earlier((0.003, 0.000), "480/- (82 % found), 210/390, 120/240"),
    ("N5 10 % control", 5): Earlier((0.007, 0.027), "90/210, 35/85, 20/40"),
    ("N7 slow replicas", 10): Earlier((0.067, 0.113), "-, 190/370, 90/160"),
    ("N7 slow replicas", 30): Earlier((0.020, 0.037), "-, 300/540, -"),
}
METHODS = {  # +10 % at minute 600; good history then +5, +10, +20 %
    "e-SR": ("55/130", ""),
    "e-SR, phi 1.0, K 4": ("", "250/395 (98 %), 90/130, 40/55"),
    "e-SR, Bennett": ("115/220", ""),
    "AsympCS since the start": ("160/235", "none found"),
    "AV-t since the start": ("165/235", ""),
}
