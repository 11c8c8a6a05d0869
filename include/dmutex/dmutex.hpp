/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutexes and condition variables across hosts for C++11 and later: the objects of <dmutex/dmutex.h> as classes.
 *
 * The mutexes satisfy Lockable and TimedLockable of the standard: std::lock_guard, std::unique_lock, std::scoped_lock,
 * std::lock() and std::condition_variable_any accept them.  The library has no code for these classes: they call the C
 * functions, whose comments (mutex.h, cond.h) say what blocks, what fork() does, and what happens to a lost hold.
 *
 *   Errors     A std::system_error of the generic category, with the sentence of dmutex_strerror_np(); owner_dead and
 *              hold_lost are classes of their own.
 *   Threads    Any thread, at any time, for all functions of mutexes and condition variables.
 *   Signals    Not async-signal-safe.
 *   Cancel     The wait functions are cancellation points, as in POSIX; the others are not.
 *   Since      0.1
 *   Source     doc/man/dmutex.hpp.3.
 *
 * Example (examples/guarded.cc):
 *
 *     dmutex::mutex ledger("billing/ledger");
 *
 *     {
 *         std::lock_guard<dmutex::mutex> guard(ledger);   // excludes threads on all hosts
 *         add_to_total(1);
 *     }
 */
#ifndef DMUTEX_DMUTEX_HPP
#define DMUTEX_DMUTEX_HPP

#if !defined(__cplusplus) || __cplusplus < 201103L
#error "<dmutex/dmutex.hpp> needs C++11 or later; <dmutex/dmutex.h> needs no more than C89 or C++98"
#endif

#include <dmutex/dmutex.h>
#include <pthread.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace dmutex {

/* ---- errors ------------------------------------------------------------------------------ */

/* The caller's hold was lost before the call: its lease ended, or the lock was broken (EPERM). */
class hold_lost : public std::system_error {
public:
    explicit hold_lost(const char *sentence)
        : std::system_error(EPERM, std::generic_category(), sentence)
    {
    }
};

/*
 * The previous owner died (EOWNERDEAD): the guarded state may be half changed.
 *
 * If lock(), try_lock() or a timed form of a robust_mutex throws it, the exception has the hold.  take() hands the hold
 * to a guard; repair the state and call consistent() before the guard unlocks.  Without take(), the destruction of the
 * last copy of the exception unlocks the mutex, which is then not recoverable.  If a wait on a condition variable
 * throws it, the guard of the wait has the hold, as after any wait.
 *
 *     try {
 *         guard.lock();
 *     } catch (dmutex::owner_dead &dead) {
 *         guard = dead.take(ledger);
 *         repair();
 *         ledger.consistent();
 *     }
 */
class owner_dead : public std::system_error {
public:
    /* `held` is unlocked with the last copy; NULL: a guard has the hold. */
    owner_dead(const char *sentence, dmutex_t *held)
        : std::system_error(EOWNERDEAD, std::generic_category(), sentence)
        , hold_(std::make_shared<hold>(held))
    {
    }

    /* True if this exception has the hold. */
    bool has_hold() const noexcept { return hold_->held != nullptr; }

    /* Hands over the hold, in the thread that caught the exception.  std::logic_error if it has none of this mutex. */
    template <class Mutex> std::unique_lock<Mutex> take(Mutex &mutex)
    {
        if (!has_hold() || hold_->held != mutex.native_handle())
            throw std::logic_error("dmutex::owner_dead::take(): the exception has no hold of this mutex");
        hold_->held = nullptr;
        return std::unique_lock<Mutex>(mutex, std::adopt_lock);
    }

private:
    struct hold {
        explicit hold(dmutex_t *mutex)
            : held(mutex)
        {
        }
        hold(const hold &) = delete;
        hold &operator=(const hold &) = delete;
        ~hold()
        {
            if (held)
                dmutex_unlock(held);
        }
        dmutex_t *held;
    };
    std::shared_ptr<hold> hold_;
};

/* ---- options ----------------------------------------------------------------------------- */

/* Attributes of a mutex other than its name; a duration of 0 means the library's default.  See attr.h. */
class options {
public:
    typedef std::chrono::milliseconds milliseconds;

    options()
        : lease_(0)
        , max_hold_(0)
        , linger_(0)
        , is_fair_(false)
    {
    }

    options &lease(milliseconds time)
    {
        lease_ = time;
        return *this;
    }
    options &max_hold(milliseconds time)
    {
        max_hold_ = time;
        return *this;
    }
    options &linger(milliseconds time)
    {
        linger_ = time;
        return *this;
    }
    options &fair(bool is_fair = true)
    {
        is_fair_ = is_fair;
        return *this;
    }

    milliseconds lease() const { return lease_; }
    milliseconds max_hold() const { return max_hold_; }
    milliseconds linger() const { return linger_; }
    bool is_fair() const { return is_fair_; }

private:
    milliseconds lease_, max_hold_, linger_;
    bool is_fair_;
};

/* ---- inner parts ------------------------------------------------------------------------- */

namespace detail {

inline void check(int result)
{
    if (result == EPERM)
        throw hold_lost(dmutex_strerror_np());
    if (result != 0)
        throw std::system_error(result, std::generic_category(), dmutex_strerror_np());
}

/* If there is no memory for the exception, the hold ends here, and the mutex is not recoverable. */
inline void throw_dead(dmutex_t *mutex)
{
    try {
        throw owner_dead(dmutex_strerror_np(), mutex);
    } catch (const std::bad_alloc &) {
        dmutex_unlock(mutex);
        throw;
    }
}

/* True if the mutex is locked, false if the result is `otherwise`. */
inline bool check_lock(int result, dmutex_t *mutex, int otherwise)
{
    if (result == EOWNERDEAD)
        throw_dead(mutex);
    if (result == otherwise && result != 0)
        return false;
    check(result);
    return true;
}

inline unsigned to_ms(std::chrono::milliseconds time)
{
    if (time.count() < 0 || time.count() > UINT32_MAX)
        throw std::system_error(EINVAL, std::generic_category(), "a time of dmutex::options is out of range");
    return static_cast<unsigned>(time.count());
}

class attributes {
public:
    attributes(int type, int robust, const options &chosen)
    {
        check(dmutexattr_init(&attr));
        check(dmutexattr_settype(&attr, type));
        check(dmutexattr_setrobust(&attr, robust));
        check(dmutexattr_setfairness_np(&attr, chosen.is_fair() ? DMUTEX_FAIR_NP : DMUTEX_THROUGHPUT_NP));
        if (chosen.lease().count() != 0)
            check(dmutexattr_setlease_np(&attr, to_ms(chosen.lease())));
        if (chosen.linger().count() != 0)
            check(dmutexattr_setlinger_np(&attr, to_ms(chosen.linger())));
        check(dmutexattr_setmaxhold_np(&attr, to_ms(chosen.max_hold())));
    }
    ~attributes() { dmutexattr_destroy(&attr); }
    attributes(const attributes &) = delete;
    attributes &operator=(const attributes &) = delete;

    dmutexattr_t attr;
};

/* Later than any wait: 146 years. */
inline std::chrono::hours longest()
{
    return std::chrono::hours(1280000);
}

/* Rounded up, so that no wait ends early; a time before the epoch becomes 0. */
template <class Clock, class Duration>
inline struct timespec to_timespec(const std::chrono::time_point<Clock, Duration> &time)
{
    typedef std::chrono::nanoseconds nanoseconds;
    typename Clock::time_point now = Clock::now();
    nanoseconds since(0);
    struct timespec result;

    if (time > now + longest())
        since = std::chrono::duration_cast<nanoseconds>((now + longest()).time_since_epoch());
    else if (time.time_since_epoch().count() > 0)
        since = std::chrono::duration_cast<nanoseconds>(time.time_since_epoch());
    if (since < time.time_since_epoch() && time <= now + longest())
        since += nanoseconds(1);
    result.tv_sec = static_cast<time_t>(since.count() / 1000000000);
    result.tv_nsec = static_cast<long>(since.count() % 1000000000);
    return result;
}

inline clockid_t clock_of(const std::chrono::steady_clock *)
{
    return CLOCK_MONOTONIC;
}
inline clockid_t clock_of(const std::chrono::system_clock *)
{
    return CLOCK_REALTIME;
}

/* The time point `time` from now; a distant one if no clock can represent it. */
template <class Rep, class Period>
inline std::chrono::steady_clock::time_point in(const std::chrono::duration<Rep, Period> &time)
{
    typedef std::chrono::steady_clock clock;
    clock::duration whole;

    if (time > longest())
        return clock::now() + longest();
    whole = std::chrono::duration_cast<clock::duration>(time);
    if (whole < time)
        whole += clock::duration(1);
    return clock::now() + whole;
}

/* ---- mutexes ----------------------------------------------------------------------------- */

template <int Type, int Robust> class basic_mutex {
public:
    typedef dmutex_t *native_handle_type;

    /*
     * The mutex of this name, shared by all processes on all hosts that use the name on the same server.  Throws
     * EINVAL if the name is empty, longer than DMUTEX_NAME_MAX_NP, or has an empty group or leaf.  Does not talk to the
     * server.
     */
    explicit basic_mutex(const char *name, const options &chosen = options())
    {
        attributes attributes(Type, Robust, chosen);

        check(dmutex_init_np(&mutex_, name, &attributes.attr));
    }
    explicit basic_mutex(const std::string &name, const options &chosen = options())
        : basic_mutex(name.c_str(), chosen)
    {
    }
    /* No thread of this process may hold the mutex or wait for it. */
    ~basic_mutex() { dmutex_destroy(&mutex_); }
    basic_mutex(const basic_mutex &) = delete;
    basic_mutex &operator=(const basic_mutex &) = delete;

    /* See dmutex_lock(). */
    void lock() { check_lock(dmutex_lock(&mutex_), &mutex_, 0); }

    /* False on EBUSY; see dmutex_trylock(). */
    bool try_lock() { return check_lock(dmutex_trylock(&mutex_), &mutex_, EBUSY); }

    /* False if the time is over, never early. */
    template <class Rep, class Period> bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
    {
        return try_lock_until(in(time));
    }
    template <class Duration>
    bool try_lock_until(const std::chrono::time_point<std::chrono::steady_clock, Duration> &time)
    {
        return clock_lock(time);
    }
    template <class Duration>
    bool try_lock_until(const std::chrono::time_point<std::chrono::system_clock, Duration> &time)
    {
        return clock_lock(time);
    }
    /* Any other clock is read again until the time has come. */
    template <class Clock, class Duration> bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
    {
        do {
            if (try_lock_for(time - Clock::now()))
                return true;
        } while (Clock::now() < time);
        return false;
    }

    /* Unlocks.  Throws nothing, because guards call it; release() says whether the hold was lost. */
    void unlock() noexcept { dmutex_unlock(&mutex_); }

    /* Unlocks.  False if the calling thread did not own the mutex: the hold was lost, or there was none. */
    bool release() noexcept { return dmutex_unlock(&mutex_) == 0; }

    /* After owner_dead: declares that the guarded state is consistent again. */
    void consistent() { check(dmutex_consistent(&mutex_)); }

    /* The fencing token of the calling thread's hold, to be sent to the guarded resource. */
    std::uint64_t token()
    {
        std::uint64_t token = 0;

        check(dmutex_token_np(&mutex_, &token));
        return token;
    }

    /* How long the calling thread's hold is certain; 0 if it is lost.  No I/O. */
    std::chrono::milliseconds remaining()
    {
        std::int64_t ms = 0;

        check(dmutex_remaining_np(&mutex_, &ms));
        return std::chrono::milliseconds(ms);
    }

    /* Asks the server to confirm the hold for a whole lease. */
    void renew() { check(dmutex_renew_np(&mutex_)); }

    native_handle_type native_handle() noexcept { return &mutex_; }

private:
    template <class Clock, class Duration> bool clock_lock(const std::chrono::time_point<Clock, Duration> &time)
    {
        struct timespec until = to_timespec(time);
        int result = dmutex_clocklock(&mutex_, clock_of(static_cast<const Clock *>(nullptr)), &until);

        return check_lock(result, &mutex_, ETIMEDOUT);
    }

    dmutex_t mutex_;
};

} /* namespace detail */

/* Throws std::errc::resource_deadlock_would_occur if the owner locks it again. */
typedef detail::basic_mutex<PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED> mutex;
/* Every mutex here has the timed functions; this is the name that the standard uses. */
typedef mutex timed_mutex;
/* The owner may lock it again, and must unlock it as often. */
typedef detail::basic_mutex<PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED> recursive_mutex;
typedef recursive_mutex recursive_timed_mutex;
/* Reports an owner's death by owner_dead. */
typedef detail::basic_mutex<PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST> robust_mutex;

/* ---- condition variables ----------------------------------------------------------------- */

/*
 * A condition variable on which threads of many processes and hosts wait, with a std::unique_lock of any mutex of this
 * header whose name has the same group.  A wait may return without a notification; the forms with a predicate wait
 * until the predicate is true.  For the results, see dcond_wait().
 */
class condition_variable {
public:
    typedef dcond_t *native_handle_type;

    explicit condition_variable(const char *name) { detail::check(dcond_init_np(&cond_, name, nullptr)); }
    explicit condition_variable(const std::string &name)
        : condition_variable(name.c_str())
    {
    }
    ~condition_variable() { dcond_destroy(&cond_); }
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    void notify_one() { detail::check(dcond_signal(&cond_)); }
    void notify_all() { detail::check(dcond_broadcast(&cond_)); }

    template <class Mutex> void wait(std::unique_lock<Mutex> &guard)
    {
        returned(dcond_wait(&cond_, guard.mutex()->native_handle()));
    }
    template <class Mutex, class Predicate> void wait(std::unique_lock<Mutex> &guard, Predicate is_done)
    {
        while (!is_done())
            wait(guard);
    }

    template <class Mutex, class Duration>
    std::cv_status wait_until(std::unique_lock<Mutex> &guard,
                              const std::chrono::time_point<std::chrono::steady_clock, Duration> &time)
    {
        return clock_wait(guard, time);
    }
    template <class Mutex, class Duration>
    std::cv_status wait_until(std::unique_lock<Mutex> &guard,
                              const std::chrono::time_point<std::chrono::system_clock, Duration> &time)
    {
        return clock_wait(guard, time);
    }
    /* Any other clock is read again at the end of the wait: only it decides whether the time has come. */
    template <class Mutex, class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<Mutex> &guard, const std::chrono::time_point<Clock, Duration> &time)
    {
        bool is_over = wait_for(guard, time - Clock::now()) == std::cv_status::timeout && Clock::now() >= time;

        return is_over ? std::cv_status::timeout : std::cv_status::no_timeout;
    }
    template <class Mutex, class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<Mutex> &guard, const std::chrono::time_point<Clock, Duration> &time,
                    Predicate is_done)
    {
        while (!is_done()) {
            if (wait_until(guard, time) == std::cv_status::timeout)
                return is_done();
        }
        return true;
    }
    template <class Mutex, class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<Mutex> &guard, const std::chrono::duration<Rep, Period> &time)
    {
        return wait_until(guard, detail::in(time));
    }
    template <class Mutex, class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<Mutex> &guard, const std::chrono::duration<Rep, Period> &time, Predicate is_done)
    {
        return wait_until(guard, detail::in(time), is_done);
    }

    native_handle_type native_handle() noexcept { return &cond_; }

private:
    template <class Mutex, class Clock, class Duration>
    std::cv_status clock_wait(std::unique_lock<Mutex> &guard, const std::chrono::time_point<Clock, Duration> &time)
    {
        struct timespec until = detail::to_timespec(time);

        return returned(dcond_clockwait(&cond_, guard.mutex()->native_handle(),
                                        detail::clock_of(static_cast<const Clock *>(nullptr)), &until));
    }

    static std::cv_status returned(int result)
    {
        if (result == ETIMEDOUT)
            return std::cv_status::timeout;
        if (result == EOWNERDEAD)
            throw owner_dead(dmutex_strerror_np(), nullptr);
        detail::check(result);
        return std::cv_status::no_timeout;
    }

    dcond_t cond_;
};

} /* namespace dmutex */

#endif
