/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of libdmutex and their static initialisers.
 *
 * Every object has 256 bytes, aligned to 8, on 32 and 64 bit alike, and contains no pointer, so it may lie in memory
 * that several processes share at different addresses.  Each process keeps everything else about an object in a table
 * of its own, in which it finds the entry by the object's name.
 *
 * The fields are private.  They are visible only because a static initialiser in C needs them.
 */
#ifndef DMUTEX_TYPES_H
#define DMUTEX_TYPES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
#define DMUTEX_BEGIN_DECLS extern "C" {
#define DMUTEX_END_DECLS }
#else
#define DMUTEX_BEGIN_DECLS
#define DMUTEX_END_DECLS
#endif

#if defined(__GNUC__)
#define DMUTEX_API __attribute__((__visibility__("default")))
#define DMUTEX_ALIGNED __attribute__((__aligned__(8)))
#else
#define DMUTEX_API
#define DMUTEX_ALIGNED
#endif

/*
 * The longest name, in bytes.  A name may contain any byte but NUL.  In "group/leaf", the group ends at the first '/';
 * a name without '/' is its own group.  The objects of a group are kept together on the server.
 */
#define DMUTEX_NAME_MAX_NP 200

/* In C++, `dmutex` is the namespace of <dmutex/dmutex.hpp>. */
#ifdef __cplusplus
#define DMUTEX_PRIVATE_TAG dmutex_t
#else
#define DMUTEX_PRIVATE_TAG dmutex
#endif

/* Room for a name inside an object: more than the limit, so that a literal that is too long is detected, not cut. */
#define DMUTEX_PRIVATE_NAME_ROOM 208
#define DMUTEX_PRIVATE_COND_NAME_ROOM 201

/*
 * A mutex that excludes threads of many processes on many hosts.
 *
 * Invariant: two objects stand for one mutex if and only if they have the same name on the same server; or both are
 * anonymous and PTHREAD_PROCESS_SHARED, and are the same memory; or both are anonymous and PTHREAD_PROCESS_PRIVATE,
 * and are the same memory of one process.  The last kind is local: it has libc's own mutex inside the object (mutex.h).
 *
 * An all-zero object is a valid anonymous, private, normal mutex, the same as DMUTEX_ANONYMOUS_INITIALIZER makes.  A
 * copy of an object is not a mutex.
 *
 * Example (examples/counter.c):
 *
 *     static dmutex_t ledger = DMUTEX_INITIALIZER("billing/ledger");
 *
 *     if (dmutex_lock(&ledger) == 0) {       // guards the file "total" on all hosts
 *         add_to_total(1);
 *         dmutex_unlock(&ledger);
 *     }
 */
typedef struct DMUTEX_PRIVATE_TAG {
    uint64_t dm_id[2];      /* anonymous: made at first use by compare-and-swap, 0 before */
    uint32_t dm_state;      /* 0 or DMUTEX_PRIVATE_STATIC_MUTEX usable, else a mark left by dmutex_destroy() */
    uint32_t dm_lease_ms;   /* 0: the default */
    uint32_t dm_maxhold_ms; /* 0: no limit */
    uint32_t dm_linger_ms;  /* 0: the default */
    uint8_t dm_type;        /* PTHREAD_MUTEX_NORMAL, _RECURSIVE, _ERRORCHECK, 3: _ADAPTIVE_NP */
    uint8_t dm_robust;      /* PTHREAD_MUTEX_STALLED, _ROBUST */
    uint8_t dm_pshared;     /* PTHREAD_PROCESS_PRIVATE, _SHARED */
    uint8_t dm_fairness;    /* DMUTEX_THROUGHPUT_NP, DMUTEX_FAIR_NP */
    uint8_t dm_named;    /* 1: dm_name is a name, even when it is empty (then: EINVAL); 2: an unchecked automatic one */
    uint8_t dm_protocol; /* PTHREAD_PRIO_NONE; for a local mutex, any protocol */
    uint8_t dm_pad[2];
    uint32_t dm_hash; /* of the name, written by the first lock; 0 before that, or without a name */
    uint32_t dm_reserved;
    char dm_name[DMUTEX_PRIVATE_NAME_ROOM]; /* anonymous and private: libc's mutex */
} DMUTEX_ALIGNED dmutex_t;

/*
 * A condition variable on which threads of many processes and hosts wait.  See cond.h.
 *
 * Invariant: as for dmutex_t, in a name space of its own.  An all-zero object is a valid anonymous, private condition
 * variable with CLOCK_REALTIME.
 */
typedef struct dcond {
    uint64_t dm_own[6]; /* libc's condition variable, for waits with a local mutex */
    /* Anonymous: the id and the key of the mutex. */
    char dm_name[DMUTEX_PRIVATE_COND_NAME_ROOM];
    uint8_t dm_clock;   /* of timed waits: CLOCK_REALTIME, CLOCK_MONOTONIC */
    uint8_t dm_pshared; /* PTHREAD_PROCESS_PRIVATE, _SHARED */
    uint8_t dm_named;   /* 1: dm_name is a name; 2: an unchecked automatic one */
    uint32_t dm_state;  /* 0 or DMUTEX_PRIVATE_STATIC_COND usable, else a mark left by dcond_destroy() */
} DMUTEX_ALIGNED dcond_t;

/* Attributes of a mutex: made by dmutexattr_init(), copied by dmutex_init(). */
typedef struct dmutexattr {
    uint32_t dm_state; /* a mark left by dmutexattr_init() */
    uint32_t dm_lease_ms;
    uint32_t dm_maxhold_ms;
    uint32_t dm_linger_ms;
    uint8_t dm_type;
    uint8_t dm_robust;
    uint8_t dm_pshared;
    uint8_t dm_fairness;
    uint8_t dm_named;
    uint8_t dm_protocol;
    uint8_t dm_hint; /* 1: for a mutex of the server, the protocol is only a hint */
    uint8_t dm_pad;
    int32_t dm_ceiling; /* 0: libc's default */
    uint32_t dm_reserved[5];
    char dm_name[DMUTEX_PRIVATE_NAME_ROOM];
} DMUTEX_ALIGNED dmutexattr_t;

/* Attributes of a condition variable. */
typedef struct dcondattr {
    uint32_t dm_state;
    uint32_t dm_clock;
    uint8_t dm_pshared;
    uint8_t dm_named;
    uint8_t dm_pad[2];
    uint32_t dm_reserved[9];
    char dm_name[DMUTEX_PRIVATE_NAME_ROOM];
} DMUTEX_ALIGNED dcondattr_t;

/* dm_state of objects with a named static initialiser: marks by which dmutex-names(1) finds them in a file. */
#define DMUTEX_PRIVATE_STATIC_MUTEX 0x7d4d9e35u
#define DMUTEX_PRIVATE_STATIC_COND 0x7d439e35u

/* Initialisers are tables. */
/* clang-format off */

/* Its value is `named`.  The compiler refuses an automatic name (named: 2) of more than DMUTEX_NAME_MAX_NP bytes. */
#ifdef __cplusplus
#define DMUTEX_PRIVATE_CHECKED(named, name) \
    ((named) + 0 * sizeof(char[(named) != 2 || sizeof(name) <= DMUTEX_NAME_MAX_NP + 1 ? 1 : -1]))
#else
#define DMUTEX_PRIVATE_CHECKED(named, name) \
    ((named) + 0 * sizeof(struct {          \
         int this_name_is_longer_than_200_bytes : (named) != 2 || sizeof(name) <= DMUTEX_NAME_MAX_NP + 1 ? 1 : -1; \
     }))
#endif

/* The static initialiser of a mutex; the library checks the numbers against <pthread.h>. */
#define DMUTEX_PRIVATE_INITIALIZER(type, robust, named, name)                                           \
    { { 0, 0 }, (named) ? DMUTEX_PRIVATE_STATIC_MUTEX : 0, 0, 0, 0, type, robust, 0, 0,                 \
      DMUTEX_PRIVATE_CHECKED(named, name), 0, { 0, 0 }, 0, 0, name }

/*
 * Static initialisers.  `name` is a string literal of 1 to DMUTEX_NAME_MAX_NP bytes; with a longer or an empty one,
 * every call on the object returns EINVAL.
 */
#define DMUTEX_INITIALIZER(name) DMUTEX_PRIVATE_INITIALIZER(0, 0, 1, "" name)
#define DMUTEX_RECURSIVE_INITIALIZER(name) DMUTEX_PRIVATE_INITIALIZER(1, 0, 1, "" name)
#define DMUTEX_ERRORCHECK_INITIALIZER(name) DMUTEX_PRIVATE_INITIALIZER(2, 0, 1, "" name)
#define DMUTEX_ROBUST_INITIALIZER(name) DMUTEX_PRIVATE_INITIALIZER(0, 1, 1, "" name)

/* An anonymous mutex, private to the process: all bytes zero. */
#define DMUTEX_ANONYMOUS_INITIALIZER DMUTEX_PRIVATE_INITIALIZER(0, 0, 0, "")

/* The same for condition variables. */
#define DCOND_PRIVATE_INITIALIZER(named, name)                                              \
    { { 0, 0, 0, 0, 0, 0 }, name, 0, 0, DMUTEX_PRIVATE_CHECKED(named, name),                \
      (named) ? DMUTEX_PRIVATE_STATIC_COND : 0 }
/* clang-format on */
#define DCOND_INITIALIZER(name) DCOND_PRIVATE_INITIALIZER(1, "" name)
#define DCOND_ANONYMOUS_INITIALIZER DCOND_PRIVATE_INITIALIZER(0, "")

/*
 * The bytes, in place of the name, that set the type of libc's mutex inside the object.  <pthread.h> has the type as an
 * int, in the fifth word of its mutex or, on 32 bit, in the fourth.
 */
#ifdef __LP64__
#define DMUTEX_PRIVATE_WORDS_BEFORE_TYPE "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#else
#define DMUTEX_PRIVATE_WORDS_BEFORE_TYPE "\0\0\0\0\0\0\0\0\0\0\0\0"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define DMUTEX_PRIVATE_LIBC_TYPE(byte) DMUTEX_PRIVATE_WORDS_BEFORE_TYPE "\0\0\0" byte
#else
#define DMUTEX_PRIVATE_LIBC_TYPE(byte) DMUTEX_PRIVATE_WORDS_BEFORE_TYPE byte
#endif

/* Order among waiters, for dmutexattr_setfairness_np(). */
#define DMUTEX_THROUGHPUT_NP 0 /* FIFO between processes; within bounds, the owner's own threads come first */
#define DMUTEX_FAIR_NP 1       /* FIFO over all threads of all hosts */

/*
 * The result of dmutex_getinfo_np().  The caller sets struct_size to sizeof(dmutex_info_t) before the call, so that a
 * later library knows how many bytes it may write.
 */
typedef struct dmutex_info {
    uint32_t struct_size; /* set by the caller */
    int32_t locked;       /* 0: no owner, and the strings are empty */
    uint64_t token;       /* fencing token of the current hold or, if there is none, of the last */
    int64_t remaining_ms; /* what remains of the owner's lease on the server */
    uint64_t thread;      /* the owner's thread id on its host, as gettid(2) returns it */
    uint32_t hold_count;  /* recursion depth; may be a third of a lease old */
    uint32_t waiters;     /* threads of all hosts in the queue, and threads waiting in the owner's process */
    uint32_t pid;         /* the owner's process id, in the owner's pid namespace */
    uint32_t health;      /* 0 clean, 1 an owner died, 2 not recoverable */
    char owner[33];       /* the owner's process, 32 hex digits; "?": the server has forgotten it */
    char host[65];        /* the owner's host label */
    char program[33];     /* the owner's program */
} dmutex_info_t;

#endif
