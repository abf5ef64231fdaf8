"""A program to record: `pytrace examples/shop.py`, then `pytrace`."""

PRICES = {"tea": 3.2, "cake": 4.5}


class SoldOut(Exception):
    pass


def price(item: str, discount: float = 0) -> float:
    if item not in PRICES:
        raise SoldOut(item)
    return PRICES[item] * (1 - discount)


def total(items: list[str], **options: float) -> float:
    return sum([price(item, **options) for item in items])


def checkout(user: str, items: list[str], password: str) -> str:
    try:
        amount = total(items, discount=0.5)
    except SoldOut as error:
        return f"no {error} today"
    return f"{amount:.2f} from {user}"


print(checkout("bob", ["tea", "cake"], password="hunter2"))
print(checkout("eve", ["tea", "pie"], password="12345"))
