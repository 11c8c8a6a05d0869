/* SPDX-License-Identifier: BSD-2-Clause */
#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define BEGIN_SWITCH(save, to, size) __sanitizer_start_switch_fiber(save, to, size)
#define END_SWITCH(saved, from, size) __sanitizer_finish_switch_fiber(saved, from, size)
#else
#define BEGIN_SWITCH(save, to, size) ((void)(save), (void)(to), (void)(size))
#define END_SWITCH(saved, from, size) ((void)(saved), (void)(from), (void)(size))
#endif
#if defined __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_SIZE (256 * 1024)

struct fiber {
    struct fiber *next; /* of the free fibers */
    ucontext_t context;
    void (*run)(void *user), (*ended)(void *user);
    void *user;
    bool has_ended;
    void *fake_stack;
    void *tsan;
    struct _Unwind_Exception unwinding;
    char *stack;
};

static struct fiber *current;
static struct fiber *spare;
static ucontext_t outside;
static const void *outside_stack;
static size_t outside_size;
#if defined __SANITIZE_THREAD__
static void *outside_tsan;
#endif

static void switch_tsan(void *to)
{
#if defined __SANITIZE_THREAD__
    __tsan_switch_to_fiber(to, 0);
#else
    (void)to;
#endif
}

static void leave(struct fiber *fiber, bool for_ever)
{
    BEGIN_SWITCH(for_ever ? NULL : &fiber->fake_stack, outside_stack, outside_size);
#if defined __SANITIZE_THREAD__
    switch_tsan(outside_tsan);
#endif
    if (for_ever)
        setcontext(&outside);
    swapcontext(&fiber->context, &outside);
    END_SWITCH(fiber->fake_stack, &outside_stack, &outside_size);
}

static void begin(void)
{
    struct fiber *fiber = current;

    END_SWITCH(NULL, &outside_stack, &outside_size);
    fiber->run(fiber->user);
    fiber->has_ended = true;
    leave(fiber, true);
}

static struct fiber *take_spare(void)
{
    struct fiber *fiber = spare;

    if (fiber) {
        spare = fiber->next;
        return fiber;
    }
    fiber = calloc(1, sizeof *fiber);
    if (!fiber || !(fiber->stack = malloc(STACK_SIZE)))
        abort();
    return fiber;
}

static void set_up(struct fiber *fiber)
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK_SIZE;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, begin, 0);
}

struct fiber *fiber_new(void (*run)(void *user), void (*ended)(void *user), void *user)
{
    struct fiber *fiber = take_spare();

    fiber->run = run;
    fiber->ended = ended;
    fiber->user = user;
    fiber->has_ended = false;
    fiber->fake_stack = NULL;
    set_up(fiber);
#if defined __SANITIZE_THREAD__
    fiber->tsan = __tsan_create_fiber(0);
#endif
    return fiber;
}

void fiber_forget(struct fiber *fiber)
{
#if defined __SANITIZE_ADDRESS__
    /* the next fiber gets the stack, without bytes poisoned by frames of the old fiber */
    extern void __asan_unpoison_memory_region(void const volatile *, size_t);
    __asan_unpoison_memory_region(fiber->stack, STACK_SIZE);
#endif
#if defined __SANITIZE_THREAD__
    __tsan_destroy_fiber(fiber->tsan);
#endif
    fiber->next = spare;
    spare = fiber;
}

bool fiber_resume(struct fiber *fiber)
{
    void *fake_stack = NULL;

    current = fiber;
#if defined __SANITIZE_THREAD__
    outside_tsan = __tsan_get_current_fiber();
#endif
    BEGIN_SWITCH(&fake_stack, fiber->stack, STACK_SIZE);
    switch_tsan(fiber->tsan);
    swapcontext(&outside, &fiber->context);
    END_SWITCH(fake_stack, &outside_stack, &outside_size);
    current = NULL;
    if (!fiber->has_ended)
        return false;
    fiber_forget(fiber);
    return true;
}

void fiber_give_way(void)
{
    leave(current, false);
}

struct fiber *fiber_current(void)
{
    return current;
}

/* ---- cancellation ------------------------------------------------------------------------ */

/* Called for each frame: at the outermost frame the fiber is over. */
static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *user)
{
    struct fiber *fiber = user;

    (void)version;
    (void)class;
    (void)exception;
    if (actions & _UA_END_OF_STACK || _Unwind_GetRegionStart(context) == (uintptr_t)begin) {
        fiber->ended(fiber->user);
        fiber->has_ended = true;
        leave(fiber, true);
    }
    return _URC_NO_REASON;
}

void fiber_unwind(void)
{
    memset(&current->unwinding, 0, sizeof current->unwinding);
    _Unwind_ForcedUnwind(&current->unwinding, stop, current);
    abort();
}
