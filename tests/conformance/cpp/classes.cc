/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The classes of <dmutex/dmutex.hpp> on a private server: one word on the command line is one test, and exit status 0
 * is a pass.  Errors of the test go to standard error.
 */
#include <dmutex/dmutex.hpp>
#include <dmutex/testing.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

/* A clock of the program's own, at half the speed of the others. */
struct slow_clock {
    typedef nanoseconds duration;
    typedef duration::rep rep;
    typedef duration::period period;
    typedef std::chrono::time_point<slow_clock> time_point;
    static const bool is_steady = true;

    static time_point now() { return time_point(duration(steady_clock::now().time_since_epoch() / 2)); }
};

/* The code of the std::system_error that `call` throws; 0: none. */
template <class Call> static int thrown(Call call)
{
    try {
        call();
    } catch (const std::system_error &error) {
        CHECK(std::strlen(error.what()) > 10);
        return error.code().value();
    }
    return 0;
}

/* The result of `call` in another thread. */
template <class Call> static auto elsewhere(Call call) -> decltype(call())
{
    decltype(call()) result{};

    std::thread([&] { result = call(); }).join();
    return result;
}

/* Four threads, guarded by each kind of guard, lose no step of a counter that is no atomic. */
static void excludes()
{
    dmutex::mutex mutex("cpp/excludes");
    std::vector<std::thread> threads;
    long count = 0;

    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&] {
            for (int turn = 0; turn < 100; turn++) {
                std::lock_guard<dmutex::mutex> guard(mutex);
                count++;
            }
        });
    }
    for (auto &thread : threads)
        thread.join();
    CHECK(count == 400);
}

/* std::lock() takes mutexes of several kinds, and leaves all of them unlocked if one throws. */
static void locks_several()
{
    dmutex::mutex first("cpp/first");
    dmutex::recursive_mutex second("cpp/second");
    dmutex::robust_mutex third(std::string("cpp/third"));

    std::lock(first, second, third);
    CHECK(!elsewhere([&] { return first.try_lock(); }));
    CHECK(!elsewhere([&] { return second.try_lock(); }));
    second.lock();
    second.unlock();
    first.unlock();
    second.unlock();
    third.unlock();
#if __cplusplus >= 201703L
    std::scoped_lock guard(first, second, third);
    CHECK(!elsewhere([&] { return third.try_lock(); }));
#endif
}

/* Times of all clocks end with false, and never early; a free mutex is locked whatever the time. */
static void times_out()
{
    dmutex::timed_mutex mutex("cpp/times");
    std::unique_lock<dmutex::timed_mutex> guard(mutex, std::defer_lock);

    for (int i = 0; i < 100 && !guard.owns_lock();
         i++) /* a try takes 50 ms at most, which a busy machine may not keep */
        (void)guard.try_lock_for(seconds(-1));
    CHECK(guard.owns_lock());
    CHECK(!elsewhere([&] {
        auto end = steady_clock::now() + milliseconds(30);
        bool is_locked = mutex.try_lock_until(end);

        CHECK(is_locked || steady_clock::now() >= end);
        return is_locked;
    }));
    CHECK(!elsewhere([&] {
        auto end = system_clock::now() + milliseconds(30);
        bool is_locked = mutex.try_lock_until(end);

        CHECK(is_locked || system_clock::now() >= end);
        return is_locked;
    }));
    CHECK(!elsewhere([&] { return mutex.try_lock_for(duration<double>(0.01)); }));
    CHECK(!elsewhere([&] { return mutex.try_lock_until(system_clock::time_point()); }));
    guard.unlock();
    CHECK(elsewhere([&] {
        bool is_locked = mutex.try_lock_for(hours::max());

        mutex.unlock();
        return is_locked;
    }));
}

/* Errors are exceptions of the standard, with the errno value and a sentence. */
static void throws_errors()
{
    dmutex::mutex mutex("cpp/errors");

    CHECK(thrown([] { dmutex::mutex nameless(""); }) == EINVAL);
    CHECK(thrown([] { dmutex::mutex odd("group/"); }) == EINVAL);
    CHECK(thrown([] { dmutex::condition_variable odd(std::string(300, 'x')); }) == EINVAL);
    CHECK(thrown([] { dmutex::mutex odd("cpp/odd", dmutex::options().lease(milliseconds(-1))); }) == EINVAL);
    CHECK(thrown([] { dmutex::mutex odd("cpp/odd", dmutex::options().lease(milliseconds(1))); }) == EINVAL);
    mutex.lock();
    CHECK(thrown([&] { mutex.lock(); }) == EDEADLK);
    CHECK(mutex.release());
    CHECK(!mutex.release());
    CHECK(thrown([&] { mutex.token(); }) == EPERM);
}

/* The token rises, and the rest of the hold can be asked for. */
static void tells_of_the_hold()
{
    dmutex::mutex mutex("cpp/hold", dmutex::options().lease(seconds(5)).linger(milliseconds(100)).fair());
    std::uint64_t before;

    mutex.lock();
    before = mutex.token();
    CHECK(mutex.remaining() > milliseconds(0) && mutex.remaining() <= seconds(5));
    mutex.renew();
    mutex.unlock();
    mutex.lock();
    CHECK(mutex.token() > before);
    mutex.unlock();
}

/* A hold that was broken is hold_lost for the functions, and false for release(). */
static void tells_of_a_loss()
{
    dmutex::mutex mutex("cpp/lost");
    dmutex::condition_variable cond("cpp/lost-cond");
    std::unique_lock<dmutex::mutex> guard(mutex);

    CHECK(dmutex_forceunlock_np(mutex.native_handle()) == 0);
    CHECK(thrown([&] { mutex.renew(); }) == EPERM);
    CHECK(mutex.remaining() == milliseconds(0));
    try {
        cond.wait(guard);
        CHECK(false);
    } catch (const dmutex::hold_lost &lost) {
        CHECK(lost.code() == std::errc::operation_not_permitted);
    }
    guard.release();
    CHECK(!mutex.release());
}

/* The owner dies: the exception has the hold, a guard takes it over, and the repaired mutex continues to work. */
static void tells_of_a_death()
{
    dmutex::robust_mutex mutex("cpp/death");
    std::unique_lock<dmutex::robust_mutex> guard(mutex, std::defer_lock);
    bool is_dead = false;

    CHECK(elsewhere([&] {
        mutex.lock();
        return true; /* the thread ends with the lock */
    }));
    try {
        guard.lock();
    } catch (dmutex::owner_dead &dead) {
        is_dead = true;
        CHECK(dead.has_hold());
        guard = dead.take(mutex);
        CHECK(!dead.has_hold());
        mutex.consistent();
    }
    CHECK(is_dead && guard.owns_lock());
    CHECK(!elsewhere([&] { return mutex.try_lock(); }));
    guard.unlock();
    CHECK(elsewhere([&] {
        bool is_locked = mutex.try_lock();

        mutex.unlock();
        return is_locked;
    }));
}

/* Nobody takes the hold over: the mutex is not recoverable. */
static void gives_up_after_a_death()
{
    dmutex::robust_mutex mutex("cpp/given-up");
    dmutex::robust_mutex other("cpp/given-up-other");

    CHECK(elsewhere([&] {
        mutex.lock();
        return true;
    }));
    CHECK(thrown([&] { std::lock_guard<dmutex::robust_mutex> guard(mutex); }) == EOWNERDEAD);
    CHECK(thrown([&] { mutex.lock(); }) == ENOTRECOVERABLE);
    try {
        throw dmutex::owner_dead("a sentence", nullptr);
    } catch (dmutex::owner_dead &dead) {
        try {
            dead.take(other);
            CHECK(false);
        } catch (const std::logic_error &) {
        }
    }
}

/* Waits with and without predicate and time, by our condition variable and by the standard's. */
static void waits()
{
    dmutex::mutex mutex("cpp/waits");
    dmutex::condition_variable cond("cpp/waits-cond");
    std::condition_variable_any any;
    int stage = 0;
    std::thread other([&] {
        std::unique_lock<dmutex::mutex> guard(mutex);

        stage = 1;
        cond.notify_all();
        cond.wait(guard, [&] { return stage == 2; });
        stage = 3;
        any.notify_all();
    });

    {
        std::unique_lock<dmutex::mutex> guard(mutex);

        CHECK(cond.wait_for(guard, hours(1), [&] { return stage == 1; }));
        stage = 2;
        cond.notify_one();
        any.wait(guard, [&] { return stage == 3; });
        CHECK(cond.wait_for(guard, milliseconds(20)) == std::cv_status::timeout);
        CHECK(!cond.wait_until(guard, system_clock::now() - hours(1), [] { return false; }));
        CHECK(cond.wait_until(guard, slow_clock::time_point()) == std::cv_status::timeout);
        auto end = slow_clock::now() + milliseconds(20);
        CHECK(!cond.wait_until(guard, end, [] { return false; }));
        CHECK(slow_clock::now() >= end);
        CHECK(guard.owns_lock());
    }
    other.join();
}

static_assert(!std::is_copy_constructible<dmutex::mutex>::value, "a copy of a mutex is not a mutex");
static_assert(!std::is_copy_assignable<dmutex::condition_variable>::value, "nor of a condition variable");
static_assert(noexcept(std::declval<dmutex::mutex &>().unlock()), "guards unlock in their destructors");
static_assert(sizeof(dmutex::mutex) == sizeof(dmutex_t), "nothing beside the object of the C interface");

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)();
    } tests[] = {
        { "excludes", excludes },
        { "locks_several", locks_several },
        { "times_out", times_out },
        { "throws_errors", throws_errors },
        { "tells_of_the_hold", tells_of_the_hold },
        { "tells_of_a_loss", tells_of_a_loss },
        { "tells_of_a_death", tells_of_a_death },
        { "gives_up_after_a_death", gives_up_after_a_death },
        { "waits", waits },
    };
    dmutex_test_server_t *server = nullptr;

    if (argc < 2) {
        for (auto &test : tests)
            std::puts(test.name);
        return 0;
    }
    CHECK(dmutex_test_server_start(&server) == 0);
    for (auto &test : tests) {
        if (std::strcmp(test.name, argv[1]) == 0) {
            test.run();
            CHECK(dmutex_test_server_stop(server) == 0);
            return 0;
        }
    }
    std::fprintf(stderr, "no test %s\n", argv[1]);
    return 2;
}
