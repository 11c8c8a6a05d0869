/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registers/apply against a model that is nothing but three lists: random steps on a mutex and on a semaphore lead both
 * to the same holders, queue, sleepers, signals and health.
 */
#include "names.h"

#include "random.h"

/* ---- the model --------------------------------------------------------------------------- */

#define ITEMS 64

struct item {
    char letter;
    int attempt, weight;
    char mark; /* of a hold: 't', 'k', or 0 */
    char condition;
    bool is_robust, is_carrier;
};

struct list {
    struct item items[ITEMS];
    int count;
};

static struct list held, waiting, sleeping;
static int capacity;
static enum dm_reg_health health;
static int owed[2]; /* signals of x and y whose carriers have left */

static int find(const struct list *list, char letter, int attempt)
{
    for (int i = 0; i < list->count; i++) {
        if (list->items[i].letter == letter && list->items[i].attempt == attempt)
            return i;
    }
    return -1;
}

static struct item take_out(struct list *list, int index)
{
    struct item item = list->items[index];

    list->count--;
    for (int i = index; i < list->count; i++)
        list->items[i] = list->items[i + 1];
    return item;
}

static void add(struct list *list, struct item item)
{
    assert_true(list->count < ITEMS);
    list->items[list->count++] = item;
}

static int taken(void)
{
    int sum = 0;

    for (int i = 0; i < held.count; i++)
        sum += held.items[i].weight;
    return sum;
}

static void lose(struct item item, bool is_death)
{
    if (item.is_carrier)
        owed[item.condition - 'x']++;
    if (is_death && item.weight == capacity)
        health = DM_REG_OWNER_DIED;
}

static bool wake_one(char condition, bool is_signal)
{
    for (int i = 0; i < sleeping.count; i++) {
        if (sleeping.items[i].condition == condition) {
            struct item item = take_out(&sleeping, i);

            item.is_carrier = is_signal;
            add(&waiting, item);
            return true;
        }
    }
    return false;
}

static void pay(void)
{
    for (int i = 0; i < 2; i++) {
        while (owed[i] > 0 && wake_one((char)('x' + i), true))
            owed[i]--;
        owed[i] = 0;
    }
}

static void serve(void)
{
    while (waiting.count && taken() + waiting.items[0].weight <= capacity) {
        struct item item = take_out(&waiting, 0);

        if (!item.is_robust && item.weight == capacity)
            health = DM_REG_CLEAN;
        add(&held, item);
    }
}

static void bury(char letter)
{
    for (int i = held.count - 1; i >= 0; i--) {
        if (held.items[i].letter == letter)
            lose(held.items[i], held.items[i].mark != 'k');
    }
    for (int i = waiting.count - 1; i >= 0; i--) {
        if (waiting.items[i].letter == letter)
            lose(waiting.items[i], false);
    }
    for (struct list *lists[] = { &held, &waiting, &sleeping }, **list = lists; list < lists + 3; list++) {
        for (int i = (*list)->count - 1; i >= 0; i--) {
            if ((*list)->items[i].letter == letter)
                take_out(*list, i);
        }
    }
    pay();
    serve();
}

static void end_hold(int index, enum dm_end end)
{
    struct item item = take_out(&held, index);

    if (end == DM_END_DIED)
        lose(item, true);
    if (end == DM_END_NOT_RECOVERABLE && item.weight == capacity) {
        health = DM_REG_NOT_RECOVERABLE;
        held.count = waiting.count = sleeping.count = 0;
    }
}

static void model_release(char letter, int attempt, enum dm_end end)
{
    int index;

    if ((index = find(&held, letter, attempt)) >= 0)
        end_hold(index, end);
    else if ((index = find(&waiting, letter, attempt)) >= 0)
        lose(take_out(&waiting, index), false);
    else if ((index = find(&sleeping, letter, attempt)) >= 0)
        take_out(&sleeping, index);
}

/* ---- one random step --------------------------------------------------------------------- */

static struct dm_reg_name_value name;

static bool is_anywhere(char letter, int attempt)
{
    return find(&held, letter, attempt) >= 0 || find(&waiting, letter, attempt) >= 0 ||
           find(&sleeping, letter, attempt) >= 0;
}

static void model_step(const struct dm_reg_step *step, char letter, char dead)
{
    int attempt = (int)step->me.attempt, leaving = (int)step->leaving.attempt, index;
    struct item item = { letter, attempt, (int)step->weight, 0, step->condition[0], step->is_robust, false };

    if (dead)
        bury(dead);
    switch (step->act) {
    case DM_REG_ACQUIRE:
    case DM_REG_TRY:
        if ((index = find(&sleeping, letter, attempt)) >= 0 && step->act == DM_REG_ACQUIRE)
            add(&waiting, take_out(&sleeping, index));
        else if (step->act == DM_REG_TRY && find(&waiting, letter, attempt) >= 0)
            model_release(letter, attempt, DM_END_UNLOCKED);
        else if (!is_anywhere(letter, attempt) && health != DM_REG_NOT_RECOVERABLE &&
                 (step->act == DM_REG_ACQUIRE || (!waiting.count && taken() + item.weight <= capacity)))
            add(&waiting, item);
        break;
    case DM_REG_RELEASE:
        model_release(letter, attempt, step->end);
        break;
    case DM_REG_CANCEL:
        if (find(&held, letter, attempt) < 0)
            model_release(letter, attempt, DM_END_UNLOCKED);
        break;
    case DM_REG_CONSISTENT:
        index = find(&held, letter, attempt);
        if (index >= 0 && held.items[index].weight == capacity && health == DM_REG_OWNER_DIED)
            health = DM_REG_CLEAN;
        break;
    case DM_REG_FORCE:
        if ((index = find(&held, letter, attempt)) >= 0)
            lose(take_out(&held, index), true);
        break;
    case DM_REG_DROP:
        if (!held.count && !waiting.count && health == DM_REG_NOT_RECOVERABLE)
            health = DM_REG_CLEAN;
        break;
    case DM_REG_MARK:
        if ((index = find(&held, letter, attempt)) >= 0)
            held.items[index].mark = "\0tk"[step->mark];
        break;
    case DM_REG_WAIT:
        if (!is_anywhere(letter, attempt) && (index = find(&held, letter, leaving)) >= 0) {
            item.weight = held.items[index].weight;
            end_hold(index, step->end);
            if (step->end == DM_END_UNLOCKED)
                add(&sleeping, item);
        }
        break;
    case DM_REG_COND_CANCEL:
        if ((index = find(&sleeping, letter, attempt)) >= 0)
            add(&waiting, take_out(&sleeping, index));
        break;
    case DM_REG_SIGNAL:
        for (int i = 0; i < step->most && wake_one(step->condition[0], true); i++)
            continue;
        break;
    default:
        break;
    }
    pay();
    serve();
}

static void show_list(const struct list *list, char text[TEXT_ROOM])
{
    for (int i = 0; i < list->count; i++) {
        const struct item *item = &list->items[i];

        add_text(text, " %c%d%s", item->letter, item->attempt, item->is_robust ? "r" : "");
        if (item->mark)
            add_text(text, "%c", item->mark);
        if (item->weight != 1)
            add_text(text, "w%d", item->weight);
        if (item->is_carrier)
            add_text(text, "+%c", item->condition);
        if (list == &sleeping)
            add_text(text, ":%c", item->condition);
    }
}

static void show_model(char text[TEXT_ROOM])
{
    text[0] = '\0';
    show_list(&held, text);
    add_text(text, " |");
    show_list(&waiting, text);
    add_text(text, " |");
    show_list(&sleeping, text);
    if (health)
        add_text(text, " ;%s", health == DM_REG_OWNER_DIED ? " died" : " never");
}

static void take_random_step(void)
{
    static const char *const conditions[] = { "x", "y" };
    char who[8], leaving[8], letter = (char)('a' + random_below(5));
    struct dm_reg_session_id dead;
    struct dm_reg_step step;
    char shown[TEXT_ROOM], wanted[TEXT_ROOM], before[TEXT_ROOM];
    int index;

    snprintf(who, sizeof who, "%c%u", letter, 1 + random_below(3));
    snprintf(leaving, sizeof leaving, "%c%u", letter, 1 + random_below(3));
    step = step_by((enum dm_reg_act)random_below(DM_REG_ACT_COUNT), who);
    if (step.act == DM_REG_CLAIM)
        step.act = DM_REG_ACQUIRE;
    step.leaving = ref_of(leaving);
    step.kind = capacity == 1 ? DM_REG_MUTEX : DM_REG_SEMAPHORE;
    step.capacity = (uint32_t)capacity;
    step.weight = 1 + random_below((unsigned)capacity);
    index = find(&waiting, letter, (int)step.me.attempt);
    if (step.act == DM_REG_TRY && index >= 0)
        step.weight = (uint32_t)waiting.items[index].weight; /* an attempt asks for the same again */
    step.is_robust = random_below(2);
    step.end = random_below(3) ? DM_END_UNLOCKED : random_below(6) ? DM_END_DIED : DM_END_NOT_RECOVERABLE;
    if (step.act == DM_REG_WAIT && step.end == DM_END_DIED)
        step.end = DM_END_UNLOCKED;
    step.mark = step.act == DM_REG_MARK ? (enum dm_reg_mark)random_below(3) : DM_REG_MARK_NONE;
    step.condition = conditions[random_below(2)];
    step.most = random_below(2) ? 1 : INT_MAX;
    dead = session_of_letter((char)(letter + 1));
    step.dead = &dead;
    step.dead_count = random_below(8) == 0;
    show_name(&name, before);
    apply_twice(&name, &step);
    model_step(&step, letter, step.dead_count ? (char)(letter + 1) : 0);
    show_name(&name, shown);
    show_model(wanted);
    if (strcmp(shown, wanted) != 0)
        fail_msg("act %d of %s (leaving %s, end %d, dead %d):\nbefore:%s\nfound: %s\nwanted:%s", step.act, who, leaving,
                 step.end, step.dead_count, before, shown, wanted);
    dm_reg_name_tidy(&name);
}

static void walk(int of_capacity)
{
    dm_reg_writer_init(&names_writer);
    held.count = waiting.count = sleeping.count = 0;
    health = DM_REG_CLEAN;
    capacity = of_capacity;
    dm_reg_name_free(&name);
    set_name(&name, "| |");
    name.kind = capacity == 1 ? DM_REG_MUTEX : DM_REG_SEMAPHORE;
    name.capacity = (uint32_t)capacity;
    for (int i = 0, steps = rounds(20000); i < steps; i++)
        take_random_step();
}

/* A mutex has the lists of the model after each of many random steps, done once or twice. */
static void test_mutex_has_the_lists_of_the_model(void **state)
{
    (void)state;
    walk(1);
}

/* The same of a lock that several hold at once. */
static void test_semaphore_has_the_lists_of_the_model(void **state)
{
    (void)state;
    walk(3);
}

static int free_name(void **state)
{
    (void)state;
    dm_reg_name_free(&name);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutex_has_the_lists_of_the_model),
        cmocka_unit_test(test_semaphore_has_the_lists_of_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, free_name);
}
