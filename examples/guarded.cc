/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C++ classes: two guards on one name, a second thread that waits, and a fencing token.
 *
 *     g++ -std=c++17 guarded.cc $(pkg-config --cflags --libs dmutex) && ./a.out
 */
#include <dmutex/dmutex.hpp>

#include <iostream>
#include <thread>

int main()
{
    dmutex::mutex ledger("example/guarded");
    dmutex::condition_variable paid("example/guarded-paid");
    long total = 0;

    std::thread payer([&] {
        std::lock_guard<dmutex::mutex> guard(ledger);
        total += 100;
        paid.notify_one();
    });

    try {
        std::unique_lock<dmutex::mutex> guard(ledger);
        if (!paid.wait_for(guard, std::chrono::seconds(10), [&] { return total == 100; }))
            std::cout << "nobody has paid\n";
        std::uint64_t first = ledger.token();
        guard.unlock();
        guard.lock();
        std::cout << "total " << total << (ledger.token() > first ? ", the token has risen" : "") << "\n";
    } catch (const std::system_error &error) {
        std::cerr << error.what() << "\n";
        payer.join();
        return 1;
    }
    payer.join();
    return 0;
}
