// cxx.cc - C++'s own ways to the heap: new and delete in all their forms, containers, thread_local objects.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

bool failed = false;

void check(const char *name, bool holds)
{
    std::printf(holds ? "ok %s\n" : "not ok %s: it does not hold\n", name);
    failed |= !holds;
}

template <typename T> T hidden(T value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

struct alignas(256) Wide {
    char bytes[300];
};

struct Counted {
    static std::atomic<int> alive;
    std::string text{std::string(100, 'x')};
    Counted() { alive++; }
    ~Counted() { alive--; }
};
std::atomic<int> Counted::alive{0};

void new_and_delete()
{
    int *one = new int(42);
    Counted *many = new Counted[1000];
    check("new", *one == 42 && malloc_usable_size(one) >= sizeof(int));
    check("new[]", Counted::alive == 1000 && many[999].text.size() == 100);
    delete one;
    delete[] many;
    check("delete[]", Counted::alive == 0);
}

void aligned_new()
{
    bool aligned = true;
    std::vector<Wide *> all;
    for (int i = 0; i < 1000; i++) {
        all.push_back(new Wide);
        aligned = aligned && reinterpret_cast<std::uintptr_t>(all.back()) % 256 == 0;
    }
    for (Wide *wide : all)
        delete wide;
    for (std::size_t alignment = 16; alignment <= 1u << 21; alignment *= 2) {
        void *block = ::operator new(1000, std::align_val_t{alignment});
        aligned = aligned && reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
        ::operator delete(block, 1000, std::align_val_t{alignment});
    }
    check("aligned new", aligned);
}

void out_of_memory()
{
    bool thrown = false;
    try {
        char *much = new char[hidden(static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - 64)];
        delete[] much;
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    check("bad_alloc", thrown);
    char *none = new (std::nothrow) char[hidden(static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - 64)];
    check("nothrow new", none == nullptr);

    static int calls = 0;
    std::set_new_handler([] {
        if (++calls == 3)
            std::set_new_handler(nullptr);
    });
    try {
        thrown = false;
        void *much = ::operator new(hidden(std::size_t{1} << 62));
        ::operator delete(much);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    check("new_handler", thrown && calls == 3);
}

// The same work twice from one seed; the results must agree, and a sum over them is known.
std::uint64_t containers(unsigned seed)
{
    std::mt19937 random(seed);
    std::map<std::string, std::vector<std::string>> tree;
    std::unordered_map<std::uint32_t, std::unique_ptr<std::string>> table;
    std::uint64_t sum = 0;
    for (int i = 0; i < 60000; i++) {
        std::uint32_t n = random();
        tree[std::to_string(n % 5000)].emplace_back(n % 300, static_cast<char>('a' + n % 26));
        if (n % 3 == 0)
            table[n % 10000] = std::make_unique<std::string>(n % 2000, 'q');
        if (n % 7 == 0)
            tree.erase(std::to_string(n / 7 % 5000));
        if (n % 5 == 0)
            table.erase(n / 5 % 10000);
    }
    for (const auto &[key, list] : tree)
        for (const auto &text : list)
            sum += key.size() * 31 + text.size() + (text.empty() ? 0 : static_cast<unsigned>(text[0]));
    for (const auto &[key, text] : table)
        sum += key ^ text->size();
    return sum;
}

void containers_agree()
{
    std::uint64_t here = containers(7), there = 0, elsewhere = 0;
    std::thread a([&] { there = containers(7); }), b([&] { elsewhere = containers(7); });
    a.join();
    b.join();
    check("containers", here != 0 && here == there && here == elsewhere);

    std::vector<int> numbers(1000000);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(1));
    std::stable_sort(numbers.begin(), numbers.end()); // takes a temporary buffer
    check("stable_sort", std::is_sorted(numbers.begin(), numbers.end()));

    std::stringstream stream;
    for (int i = 0; i < 10000; i++)
        stream << i << ' ';
    int n = 0, last = -1, next;
    while (stream >> next)
        n += next == ++last;
    check("stringstream", n == 10000);
}

// Destroyed while its thread ends, after the thread's own code.
struct AtEnd {
    std::vector<std::string> held;
    static std::atomic<int> ended;
    ~AtEnd()
    {
        std::vector<std::string> more(100, std::string(200, 'e'));
        held.clear();
        if (more.back().size() == 200)
            ended++;
    }
};
std::atomic<int> AtEnd::ended{0};
thread_local AtEnd at_end;

void thread_local_objects()
{
    for (int round = 0; round < 20; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 10; i++)
            threads.emplace_back([] {
                for (int k = 0; k < 100; k++)
                    at_end.held.emplace_back(50 + k, 'h');
            });
        for (auto &thread : threads)
            thread.join();
    }
    check("thread_local destructors", AtEnd::ended == 200);
}

void exceptions()
{
    int caught = 0;
    for (int i = 0; i < 2000; i++)
        try {
            Counted counted;
            throw std::runtime_error(std::string(1000, 'r'));
        } catch (const std::exception &error) {
            caught += std::string(error.what()).size() == 1000;
        }
    check("exceptions", caught == 2000 && Counted::alive == 0);
}

// Handed from thread to thread; the last owner frees.
void shared_between_threads()
{
    std::vector<std::thread> threads;
    std::atomic<long> sum{0};
    for (int i = 0; i < 8; i++) {
        auto shared = std::make_shared<std::vector<Counted>>(200);
        for (int k = 0; k < 4; k++)
            threads.emplace_back([shared, &sum] { sum += static_cast<long>(shared->size()); });
    }
    for (auto &thread : threads)
        thread.join();
    threads.clear();
    check("shared_ptr across threads", sum == 8 * 4 * 200 && Counted::alive == 0);
}

} // namespace

int main()
{
    new_and_delete();
    aligned_new();
    out_of_memory();
    containers_agree();
    thread_local_objects();
    exceptions();
    shared_between_threads();
    return failed;
}
