"""A small application of Flask, served by gunicorn: an order as JSON."""

from flask import Flask, Response, abort, jsonify

app = Flask(__name__)
PRICES = {f"product {i}": 0.5 + i % 13 for i in range(40)}


class Order:
    def __init__(self, number: int) -> None:
        self.number = number
        self.items = {f"product {(number + i * 7) % 40}": i + 1 for i in range(3)}

    @property
    def total(self) -> float:
        return sum([price(name) * count for name, count in self.items.items()])

    def describe(self) -> dict[str, object]:
        return {"number": self.number, "items": self.items, "total": self.total}


def price(name: str) -> float:
    return PRICES[name]


def find(number: int) -> Order | None:
    return Order(number) if number < 1000 else None


@app.get("/orders/<int:number>")
def order(number: int) -> Response:
    found = find(number)
    if found is None:
        abort(404)
    return jsonify(found.describe())
