/* What C++ adds to native_library.c: other names, and exceptions. */
#include <stdexcept>
#include <string>

namespace shop {

struct Order {
    std::string name;
    int total(int x) const;
};

__attribute__((noinline)) int Order::total(int x) const
{
    if (x > 1)
        throw std::runtime_error(name);
    return x;
}

template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }

}

extern "C" int throws(int n)
{
    int caught = 0;
    for (int i = 0; i < n; i++)
        try {
            shop::Order{"tea"}.total(shop::twice(i));
        } catch (const std::exception &) {
            caught++;
        }
    return caught;
}
