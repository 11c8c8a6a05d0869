// SPDX-License-Identifier: BSD-2-Clause
// C++'s mutexes, as commands of legacy.c:
//
//   std lock|try_lock|unlock|try_for MS      app::Shelf::guard, a std::timed_mutex
//   std wait|wait_for MS|notify              app::Shelf::filled, with app::Shelf::door, a std::mutex: locked by wait
//   std leave                                unlocks app::Shelf::door
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

namespace app {
class Shelf {
public:
    static std::timed_mutex guard;
    static std::mutex door;
    static std::condition_variable filled;
};

std::timed_mutex Shelf::guard;
std::mutex Shelf::door;
std::condition_variable Shelf::filled;
} // namespace app

using app::Shelf;

static std::chrono::milliseconds milliseconds(const char *word)
{
    return std::chrono::milliseconds(std::atol(word));
}

static const char *answer(const char *what, const char *ms)
{
    if (std::strcmp(what, "lock") == 0)
        Shelf::guard.lock();
    else if (std::strcmp(what, "try_lock") == 0)
        return Shelf::guard.try_lock() ? "0" : "EBUSY";
    else if (std::strcmp(what, "try_for") == 0)
        return Shelf::guard.try_lock_for(milliseconds(ms)) ? "0" : "ETIMEDOUT";
    else if (std::strcmp(what, "unlock") == 0)
        Shelf::guard.unlock();
    else if (std::strcmp(what, "leave") == 0)
        Shelf::door.unlock();
    else if (std::strcmp(what, "notify") == 0)
        Shelf::filled.notify_all();
    else {
        std::unique_lock<std::mutex> lock(Shelf::door);
        bool is_over = std::strcmp(what, "wait_for") == 0 &&
                       Shelf::filled.wait_for(lock, milliseconds(ms)) == std::cv_status::timeout;

        if (std::strcmp(what, "wait") == 0)
            Shelf::filled.wait(lock);
        lock.release(); // the mutex stays locked
        return is_over ? "ETIMEDOUT" : "0";
    }
    return "0";
}

extern "C" const char *extra(char **words);

extern "C" const char *extra(char **words)
{
    if (std::strcmp(words[0], "std") != 0)
        return nullptr;
    try {
        return answer(words[1], words[2]);
    } catch (const std::exception &problem) {
        return "thrown";
    }
}
