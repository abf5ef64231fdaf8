"""An object-oriented program: small objects, methods, properties, dicts, strings as arguments."""


class Item:
    __slots__ = ("_price", "count", "name")

    def __init__(self, name: str, price: float, count: int) -> None:
        self.name = name
        self._price = price
        self.count = count

    @property
    def price(self) -> float:
        return self._price

    def total(self) -> float:
        return self.price * self.count

    def label(self, prefix: str) -> str:
        return f"{prefix}: {self.name}"


class Order:
    def __init__(self, number: int, customer: str) -> None:
        self.number = number
        self.customer = customer
        self.items: dict[str, Item] = {}

    def add(self, name: str, price: float, count: int = 1) -> Item:
        item = Item(name, price, count)
        self.items[item.label("item")] = item
        return item

    @property
    def total(self) -> float:
        return sum([item.total() for item in self.items.values()])

    def describe(self, options: dict[str, object]) -> str:
        return f"{self.customer} {options['currency']} {self.total:.2f}"


class Shop:
    def __init__(self) -> None:
        self.orders: dict[int, Order] = {}
        self.sums: dict[str, float] = {}

    def order(self, number: int, customer: str) -> Order:
        order = Order(number, customer)
        self.orders[number % 1000] = order
        return order

    def account(self, order: Order, *, currency: str) -> str:
        self.sums[order.customer] = self.sums.get(order.customer, 0.0) + order.total
        return order.describe({"currency": currency, "number": order.number})


CUSTOMERS = [f"customer {i}" for i in range(100)]
PRODUCTS = [f"product {i}" for i in range(40)]


def trade(shop: Shop, number: int) -> None:
    order = shop.order(number, CUSTOMERS[number % 100])
    for i in range(3):
        order.add(PRODUCTS[(number + i * 7) % 40], 0.5 + number % 13, i + 1)
    shop.account(order, currency="EUR")


def trade_thousand() -> None:
    shop = Shop()
    for number in range(1000):
        trade(shop, number)
