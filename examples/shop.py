"""A program to record: `pytrace --attributes 8 examples/shop.py`, then `pytrace`."""

from decimal import Decimal

PRICES = {"tea": Decimal("3.20"), "cake": Decimal("4.50")}


class SoldOut(Exception):
    pass


class Order:
    def __init__(self, user: str, items: list[str]) -> None:
        self.user = user
        self.items = items
        self.total = Decimal(0)


def price(item: str, discount: Decimal) -> Decimal:
    if item not in PRICES:
        raise SoldOut(item)
    return PRICES[item] * (1 - discount)


def add_up(order: Order, **options: Decimal) -> Order:
    for item in order.items:
        order.total += price(item, **options)
    return order


def checkout(order: Order, password: str) -> str:
    try:
        order = add_up(order, discount=Decimal("0.5"))
    except SoldOut as error:
        return f"no {error} today"
    return f"{order.total:.2f} from {order.user}"


print(checkout(Order("bob", ["tea", "cake"]), password="hunter2"))
print(checkout(Order("eve", ["tea", "pie"]), password="12345"))
