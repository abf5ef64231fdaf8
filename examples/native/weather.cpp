// A library with all that native code does: C and C++, threads without Python, calls back into
// Python, exceptions, longjmp. `make` compiles it with -finstrument-functions.
#include <csetjmp>
#include <stdexcept>
#include <thread>
#include <vector>

namespace weather {

class Station {
public:
    explicit Station(int id) : id(id) {}
    double read(int hour) const;

private:
    int id;
};

double Station::read(int hour) const
{
    if (hour > 23)
        throw std::out_of_range("no such hour");
    return id + hour / 2.0;
}

static double mean(const Station &station, int hours)
{
    double sum = 0;
    for (int hour = 0; hour < hours; hour++)
        sum += station.read(hour);
    return sum / hours;
}

}

static std::jmp_buf given_up;

static void look_for_snow(int days)
{
    if (days == 0)
        std::longjmp(given_up, 1);
    look_for_snow(days - 1);
}

extern "C" {

double forecast(int stations)
{
    std::vector<double> means(stations);
    std::vector<std::thread> threads;
    for (int i = 0; i < stations; i++)
        threads.emplace_back([&means, i] { means[i] = weather::mean(weather::Station(i), 3); });
    for (auto &thread : threads)
        thread.join();
    return means[0];
}

int has_hour(int hour)
{
    try {
        weather::Station(1).read(hour);
        return 1;
    } catch (const std::out_of_range &) {
        return 0;
    }
}

int will_snow(int days)
{
    if (setjmp(given_up))
        return 0;
    look_for_snow(days);
    return 1;
}

void each_hour(void (*report)(int, double))
{
    for (int hour = 0; hour < 2; hour++)
        report(hour, weather::Station(1).read(hour));
}

}
