"""Uses a library in C++; `make` in this folder records it."""

import ctypes
from pathlib import Path

library = ctypes.CDLL(str(Path(__file__).with_name("libweather.so")))
library.forecast.restype = ctypes.c_double


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_double)
def report(hour: int, degrees: float) -> None:
    print(f"{hour:02}:00  {degrees:.1f}")


def main() -> None:
    library.each_hour(report)
    print("mean:", library.forecast(2))
    print("snow:", library.will_snow(2))
    print("25:00:", library.has_hour(25))


if __name__ == "__main__":
    main()
