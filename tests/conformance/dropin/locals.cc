/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C++ library's own mutexes and conditions together with a pthread_mutex_t that is ours. Runs without a server:
 * local objects work, others cannot. With an argument, the pthread mutex is meant to be on the server. test_compiles.sh
 * puts other headers before ours, and ours first.
 */
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include <pthread.h>

namespace {

enum { TIMES = 10000 };

pthread_mutex_t distributed = PTHREAD_MUTEX_INITIALIZER;
std::mutex local;
std::condition_variable filled;
int total; // guarded by `local`

void add()
{
    for (int i = 0; i < TIMES; i++) {
        std::lock_guard<std::mutex> guard(local);
        total++;
    }
    filled.notify_one();
}

bool adds_exactly()
{
    std::thread first(add), second(add);
    {
        std::unique_lock<std::mutex> guard(local);
        filled.wait(guard, [] { return total == 2 * TIMES; });
    }
    first.join();
    second.join();
    return total == 2 * TIMES;
}

} // namespace

int main(int argc, char **)
{
    int wanted = argc > 1 ? ENOLCK : 0;
    int result = pthread_mutex_lock(&distributed);

    if (result != wanted)
        std::printf("the lock of the pthread mutex gave %d, not %d\n", result, wanted);
    if (!adds_exactly())
        std::printf("the std::mutex does not exclude\n");
    return 0;
}
