/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/value.h"

#include <errno.h>
#include <string.h>

#include "base/block.h"
#include "core/hold.h"
#include "store/store.h"

/* The letter after the version; another form of a value gets another letter. */
enum { FORM_NAME = 'n', FORM_SESSION = 's', FORM_DEAD_SESSION = 'd', FORM_MARK = 'm', FORM_BINDING = 'c' };

/* ---- writing ----------------------------------------------------------------------------- */

/* Counts all bytes, and keeps those for which there is room. */
struct writer {
    uint8_t *to;
    size_t room, size;
};

static void put_byte(struct writer *writer, uint8_t byte)
{
    if (writer->size < writer->room)
        writer->to[writer->size] = byte;
    writer->size++;
}

static void put_bytes(struct writer *writer, const void *bytes, size_t size)
{
    if (size && writer->size + size <= writer->room)
        memcpy(writer->to + writer->size, bytes, size);
    writer->size += size;
}

static void put_word(struct writer *writer, uint64_t word)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        put_byte(writer, (uint8_t)(word >> shift));
}

/* Seven bits a byte, the lowest first; the highest bit says that another byte follows. */
static void put_number(struct writer *writer, uint64_t number)
{
    for (; number > 127; number >>= 7)
        put_byte(writer, (uint8_t)(number | 128));
    put_byte(writer, (uint8_t)number);
}

static void put_text(struct writer *writer, const char *text)
{
    size_t length = strlen(text);

    put_number(writer, length);
    put_bytes(writer, text, length);
}

static void put_head(struct writer *writer, const struct dm_reg_version *version, uint8_t form)
{
    put_bytes(writer, version->bytes, sizeof version->bytes);
    put_byte(writer, form);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* After the first fault `fault` is set, and all that is read is 0. */
struct reader {
    const uint8_t *at;
    size_t left;
    const char *fault;
};

static void set_fault(struct reader *reader, const char *fault)
{
    if (!reader->fault)
        reader->fault = fault;
    reader->left = 0;
}

static const uint8_t *get_bytes(struct reader *reader, size_t size)
{
    const uint8_t *bytes = reader->at;

    if (size > reader->left) {
        set_fault(reader, "it is cut off");
        return NULL;
    }
    reader->at += size;
    reader->left -= size;
    return bytes;
}

static uint8_t get_byte(struct reader *reader)
{
    const uint8_t *byte = get_bytes(reader, 1);

    return byte ? *byte : 0;
}

static uint64_t get_word(struct reader *reader)
{
    const uint8_t *bytes = get_bytes(reader, 8);
    uint64_t word = 0;

    for (int i = 0; bytes && i < 8; i++)
        word = word << 8 | bytes[i];
    return word;
}

/* Each number has one form only, the shortest. */
static uint64_t get_number(struct reader *reader, uint64_t most)
{
    uint64_t number = 0;

    for (int shift = 0; shift < 63; shift += 7) {
        uint8_t byte = get_byte(reader);

        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            if (number > most || (byte == 0 && shift > 0))
                break;
            return number;
        }
    }
    set_fault(reader, "a number in it is too large");
    return 0;
}

/* A text without NUL, of 1 to room - 1 bytes. */
static void get_text(struct reader *reader, char *ret_text, size_t room)
{
    size_t length = (size_t)get_number(reader, room - 1);
    const uint8_t *bytes = get_bytes(reader, length);

    ret_text[0] = '\0';
    if (!bytes || !length || memchr(bytes, 0, length)) {
        set_fault(reader, "a text in it is none");
        return;
    }
    memcpy(ret_text, bytes, length);
    ret_text[length] = '\0';
}

static struct reader begin(const void *bytes, size_t size, struct dm_reg_version *ret_version)
{
    struct reader reader = { bytes, size, NULL };
    const uint8_t *version = get_bytes(&reader, sizeof ret_version->bytes);

    *ret_version = (struct dm_reg_version){ { 0 } };
    if (version)
        memcpy(ret_version->bytes, version, sizeof ret_version->bytes);
    if (dm_reg_version_is_absent(ret_version))
        set_fault(&reader, "it has no version");
    return reader;
}

static void get_form(struct reader *reader, uint8_t form)
{
    if (get_byte(reader) != form)
        set_fault(reader, "it is of another kind, or was written by another version of libdmutex");
}

/* Returns 0, or EBADMSG with the reason. */
static int finish(struct reader *reader, const char **ret_reason)
{
    if (reader->left)
        set_fault(reader, "something follows it");
    if (!reader->fault)
        return 0;
    *ret_reason = reader->fault;
    return EBADMSG;
}

/* ---- a name: memory ---------------------------------------------------------------------- */

void dm_reg_name_init(struct dm_reg_name_value *value)
{
    *value = (struct dm_reg_name_value){ .capacity = 1 };
}

void dm_reg_name_free(struct dm_reg_name_value *value)
{
    dm_block_give(value->sessions);
    dm_block_give(value->conditions);
    dm_block_give(value->entries);
    dm_reg_name_init(value);
}

/* Makes *memory, of *room bytes, at least `wanted` bytes long. */
static bool grow(void **memory, size_t *room, size_t wanted)
{
    void *larger;

    if (wanted <= *room)
        return true;
    if (wanted < 2 * *room)
        wanted = 2 * *room;
    larger = dm_block_take(wanted);
    if (!larger)
        return false;
    if (*memory)
        memcpy(larger, *memory, *room);
    dm_block_give(*memory);
    *memory = larger;
    *room = dm_block_is(larger) ? DM_BLOCK_ROOM : wanted;
    return true;
}

static int entry_count(const struct dm_reg_name_value *value)
{
    return value->hold_count + value->queue_count + value->sleeper_count;
}

int dm_reg_name_reserve(struct dm_reg_name_value *value, int sessions, int conditions, int entries)
{
    size_t session_room = (size_t)(value->session_count + sessions) * sizeof *value->sessions;
    size_t condition_room = (size_t)(value->condition_count + conditions) * sizeof *value->conditions;
    size_t entry_room = (size_t)(entry_count(value) + entries) * sizeof *value->entries;
    void *memory = value->sessions;

    if (!grow(&memory, &value->sessions_room, session_room))
        return ENOMEM;
    value->sessions = memory;
    memory = value->conditions;
    if (!grow(&memory, &value->conditions_room, condition_room))
        return ENOMEM;
    value->conditions = memory;
    memory = value->entries;
    if (!grow(&memory, &value->entries_room, entry_room))
        return ENOMEM;
    value->entries = memory;
    return 0;
}

/* ---- a name: the tables ------------------------------------------------------------------ */

bool dm_reg_session_id_equals(const struct dm_reg_session_id *one, const struct dm_reg_session_id *other)
{
    return one->serial == other->serial && one->lease_ms == other->lease_ms && one->identity == other->identity &&
           memcmp(one->uuid, other->uuid, sizeof one->uuid) == 0;
}

bool dm_reg_is_condition(const char *key)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~%/-";
    size_t length = strnlen(key, DM_REG_KEY_MAX + 1);

    return length && length <= DM_REG_KEY_MAX && strspn(key, letters) == length;
}

static bool is_sleeper(const struct dm_reg_name_value *value, int index)
{
    return index >= value->hold_count + value->queue_count;
}

static bool has_condition(const struct dm_reg_name_value *value, int index)
{
    return is_sleeper(value, index) || value->entries[index].flags & DM_REG_CARRIES;
}

/* Sets the marks of the sessions and conditions that entries name to 1, and those of the others to 0. */
static void mark_used(struct dm_reg_name_value *value)
{
    for (int i = 0; i < value->session_count; i++)
        value->sessions[i].mark = 0;
    for (int i = 0; i < value->condition_count; i++)
        value->conditions[i].mark = 0;
    for (int i = 0; i < entry_count(value); i++) {
        value->sessions[value->entries[i].session].mark = 1;
        if (has_condition(value, i))
            value->conditions[value->entries[i].condition].mark = 1;
    }
}

void dm_reg_name_tidy(struct dm_reg_name_value *value)
{
    int sessions = 0, conditions = 0;

    mark_used(value);
    for (int i = 0; i < value->session_count; i++) {
        if (value->sessions[i].mark) {
            value->sessions[i].mark = (uint32_t)sessions;
            value->sessions[sessions].id = value->sessions[i].id;
            sessions++;
        }
    }
    for (int i = 0; i < value->condition_count; i++) {
        if (value->conditions[i].mark) {
            value->conditions[i].mark = (uint32_t)conditions;
            memmove(value->conditions[conditions].name, value->conditions[i].name, DM_REG_CONDITION_ROOM);
            conditions++;
        }
    }
    for (int i = 0; i < entry_count(value); i++) {
        struct dm_reg_entry *entry = &value->entries[i];

        entry->session = (uint16_t)value->sessions[entry->session].mark;
        entry->condition = has_condition(value, i) ? (uint16_t)value->conditions[entry->condition].mark : 0;
    }
    value->session_count = sessions;
    value->condition_count = conditions;
    value->last.is_known = value->last.is_known && value->hold_count == 0;
}

/* ---- a name: encoding -------------------------------------------------------------------- */

/* Beside the flags of an entry: its weight is another one than 1, and follows. */
#define HAS_WEIGHT 16

/* Beside the health: the last hold follows after everything else. */
#define HAS_LAST 4

/* Of a process that nobody knows. */
#define NO_LABEL "?"

static uint64_t oldest_ms(const struct dm_reg_name_value *value)
{
    uint64_t oldest = entry_count(value) ? value->entries[0].since_ms : 0;

    for (int i = 1; i < entry_count(value); i++) {
        if (value->entries[i].since_ms < oldest)
            oldest = value->entries[i].since_ms;
    }
    return oldest;
}

static void put_session(struct writer *writer, const struct dm_reg_name_value *value,
                        const struct dm_reg_session_id *id)
{
    bool is_of_other_data = id->identity != value->identity;

    put_bytes(writer, id->uuid, sizeof id->uuid);
    put_number(writer, (uint64_t)id->serial << 1 | is_of_other_data);
    put_number(writer, id->lease_ms);
    if (is_of_other_data)
        put_word(writer, id->identity);
}

/* before: the arrival of the entry before it in the same list, 0 of the first. */
static void put_entry(struct writer *writer, const struct dm_reg_name_value *value, int index, uint64_t before,
                      uint64_t oldest)
{
    const struct dm_reg_entry *entry = &value->entries[index];

    put_number(writer, entry->session);
    put_byte(writer, entry->flags | (entry->weight == 1 ? 0 : HAS_WEIGHT));
    put_word(writer, entry->attempt);
    put_number(writer, entry->thread);
    if (entry->weight != 1)
        put_number(writer, entry->weight);
    if (has_condition(value, index))
        put_number(writer, entry->condition);
    put_number(writer, entry->since_ms - oldest);
    put_number(writer, index < value->hold_count ? value->token - entry->token : entry->arrival - before);
}

static void put_last(struct writer *writer, const struct dm_reg_last *last)
{
    put_byte(writer, (uint8_t)last->how);
    put_number(writer, last->thread);
    put_number(writer, last->since_ms);
    put_number(writer, last->held_ms);
    put_text(writer, last->label[0] ? last->label : NO_LABEL);
}

size_t dm_reg_name_encode(const struct dm_reg_name_value *value, void *to, size_t room)
{
    struct writer writer = { to, room, 0 };
    uint64_t oldest = oldest_ms(value);

    put_head(&writer, &value->version, FORM_NAME);
    put_word(&writer, value->identity);
    put_byte(&writer, (uint8_t)value->kind);
    put_number(&writer, value->capacity);
    put_number(&writer, value->token);
    put_number(&writer, value->arrival);
    put_byte(&writer, (uint8_t)(value->health | (value->last.is_known ? HAS_LAST : 0)));
    put_number(&writer, oldest);
    put_number(&writer, (uint64_t)value->session_count);
    put_number(&writer, (uint64_t)value->condition_count);
    put_number(&writer, (uint64_t)value->hold_count);
    put_number(&writer, (uint64_t)value->queue_count);
    put_number(&writer, (uint64_t)value->sleeper_count);
    for (int i = 0; i < value->session_count; i++)
        put_session(&writer, value, &value->sessions[i].id);
    for (int i = 0; i < value->condition_count; i++)
        put_text(&writer, value->conditions[i].name);
    for (int i = 0; i < entry_count(value); i++) {
        bool is_first = i == value->hold_count || i == value->hold_count + value->queue_count;

        put_entry(&writer, value, i, is_first || i == 0 ? 0 : value->entries[i - 1].arrival, oldest);
    }
    if (value->last.is_known)
        put_last(&writer, &value->last);
    return writer.size;
}

/* ---- a name: decoding -------------------------------------------------------------------- */

/* The fewest bytes of each, so that a count cannot ask for more memory than the value itself has. */
enum { SESSION_MIN = 18, CONDITION_MIN = 2, ENTRY_MIN = 13 };

static void get_session(struct reader *reader, struct dm_reg_name_value *value)
{
    struct dm_reg_session_id *id = &value->sessions[value->session_count++].id;
    const uint8_t *uuid = get_bytes(reader, sizeof id->uuid);
    uint64_t serial = get_number(reader, (uint64_t)UINT32_MAX << 1 | 1);

    *id = (struct dm_reg_session_id){ .serial = (uint32_t)(serial >> 1), .identity = value->identity };
    if (uuid)
        memcpy(id->uuid, uuid, sizeof id->uuid);
    id->lease_ms = (uint32_t)get_number(reader, DM_LEASE_MAX_MS);
    if (serial & 1)
        id->identity = get_word(reader);
    if (!id->serial || !id->lease_ms || !id->identity || ((serial & 1) && id->identity == value->identity))
        set_fault(reader, "a session in it is none");
}

static void get_condition(struct reader *reader, struct dm_reg_name_value *value)
{
    struct dm_reg_table_condition *condition = &value->conditions[value->condition_count++];

    get_text(reader, condition->name, sizeof condition->name);
    for (int i = 0; i < value->condition_count - 1; i++) {
        if (strcmp(value->conditions[i].name, condition->name) == 0)
            set_fault(reader, "a condition is in it twice");
    }
    if (!dm_reg_is_condition(condition->name))
        set_fault(reader, "a condition in it is none");
}

/* The number of an entry: a hold's token, below the last one by so many; or an arrival, above the one before. */
static void get_entry_number(struct reader *reader, struct dm_reg_name_value *value, int index, uint64_t before)
{
    struct dm_reg_entry *entry = &value->entries[index];

    if (index < value->hold_count)
        entry->token = value->token - get_number(reader, value->token ? value->token - 1 : 0);
    else
        entry->arrival = before + get_number(reader, value->arrival - before);
    if (!entry->token && !entry->arrival)
        set_fault(reader, "an attempt in it has no number");
}

static void get_entry(struct reader *reader, struct dm_reg_name_value *value, int index, uint64_t before,
                      uint64_t oldest)
{
    struct dm_reg_entry *entry = &value->entries[index];
    uint8_t flags;

    *entry = (struct dm_reg_entry){ .session = (uint16_t)get_number(reader, (uint64_t)value->session_count - 1) };
    flags = get_byte(reader);
    entry->flags = flags & DM_REG_FLAGS;
    entry->attempt = get_word(reader);
    entry->thread = get_number(reader, DM_REG_NUMBER_LIMIT - 1);
    entry->weight = flags & HAS_WEIGHT ? (uint32_t)get_number(reader, value->capacity) : 1;
    if (has_condition(value, index)) {
        if (value->condition_count)
            entry->condition = (uint16_t)get_number(reader, (uint64_t)value->condition_count - 1);
        else
            set_fault(reader, "an attempt in it waits for nothing");
    }
    entry->since_ms = oldest + get_number(reader, DM_REG_NUMBER_LIMIT - 1 - oldest);
    get_entry_number(reader, value, index, before);
    if (flags & ~(DM_REG_FLAGS | HAS_WEIGHT) || (flags & HAS_WEIGHT && entry->weight < 2) || !entry->attempt ||
        (flags & DM_REG_KEPT && index >= value->hold_count) || (flags & DM_REG_CARRIES && is_sleeper(value, index)))
        set_fault(reader, "an attempt in it is none");
}

/* The fixed part, and the counts. */
struct head {
    uint64_t oldest;
    int sessions, conditions;
};

static int get_count(struct reader *reader, int most, size_t least_bytes)
{
    uint64_t most_bytes = reader->left / least_bytes;

    return (int)get_number(reader, most_bytes < (uint64_t)most ? most_bytes : (uint64_t)most);
}

static struct head get_head(struct reader *reader, struct dm_reg_name_value *value)
{
    struct head head = { 0 };
    uint8_t kind, health;

    value->identity = get_word(reader);
    kind = get_byte(reader);
    value->capacity = (uint32_t)get_number(reader, DM_REG_CAPACITY_MAX);
    value->token = get_number(reader, DM_TOKEN_LIMIT - 1);
    value->arrival = get_number(reader, DM_REG_NUMBER_LIMIT - 1);
    health = get_byte(reader);
    value->last.is_known = health & HAS_LAST;
    health &= (uint8_t)~HAS_LAST;
    if (kind >= DM_REG_KIND_COUNT || health > DM_REG_NOT_RECOVERABLE || !value->capacity ||
        (kind == DM_REG_MUTEX && value->capacity != 1) ||
        (kind == DM_REG_RWLOCK && value->capacity != DM_REG_RWLOCK_CAPACITY))
        set_fault(reader, "its kind is unknown");
    value->kind = kind;
    value->health = health;
    head.oldest = get_number(reader, DM_REG_NUMBER_LIMIT - 1);
    head.sessions = get_count(reader, DM_REG_HOLDS_MAX + 3 * DM_REG_QUEUE_MAX, SESSION_MIN);
    head.conditions = get_count(reader, DM_REG_CONDITIONS_MAX, CONDITION_MIN);
    value->hold_count = get_count(reader, DM_REG_HOLDS_MAX, ENTRY_MIN);
    value->queue_count = get_count(reader, 2 * DM_REG_QUEUE_MAX, ENTRY_MIN);
    value->sleeper_count = get_count(reader, DM_REG_QUEUE_MAX, ENTRY_MIN);
    return head;
}

/* What one entry does not show. */
static void check_whole(struct reader *reader, struct dm_reg_name_value *value, uint64_t oldest)
{
    uint64_t taken = 0;
    bool are_used = true;

    for (int i = 0; i < value->hold_count; i++)
        taken += value->entries[i].weight;
    mark_used(value);
    for (int i = 0; i < value->session_count; i++)
        are_used = are_used && value->sessions[i].mark;
    for (int i = 0; i < value->condition_count; i++)
        are_used = are_used && value->conditions[i].mark;
    if (taken > value->capacity)
        set_fault(reader, "more hold it than can");
    if (!are_used || oldest != oldest_ms(value))
        set_fault(reader, "it has more than it needs");
    if (value->health == DM_REG_NOT_RECOVERABLE && entry_count(value))
        set_fault(reader, "it is not recoverable, and somebody waits");
}

static void get_last(struct reader *reader, struct dm_reg_name_value *value)
{
    struct dm_reg_last *last = &value->last;

    last->how = get_byte(reader);
    last->thread = get_number(reader, DM_REG_NUMBER_LIMIT - 1);
    last->since_ms = get_number(reader, DM_REG_NUMBER_LIMIT - 1);
    last->held_ms = get_number(reader, DM_REG_NUMBER_LIMIT - 1);
    get_text(reader, last->label, sizeof last->label);
    if (last->how > DM_END_BROKEN || value->hold_count)
        set_fault(reader, "the last hold in it is none");
}

/* Called with the counts of the entries set, and memory for all. */
static void get_rest(struct reader *reader, struct dm_reg_name_value *value, const struct head *head)
{
    uint64_t before = 0;

    for (int i = 0; i < head->sessions; i++)
        get_session(reader, value);
    for (int i = 0; i < head->conditions; i++)
        get_condition(reader, value);
    if (entry_count(value) && !value->session_count)
        set_fault(reader, "an attempt in it has no session");
    for (int i = 0; i < entry_count(value) && !reader->fault; i++) {
        if (i == value->hold_count || i == value->hold_count + value->queue_count)
            before = 0;
        get_entry(reader, value, i, before, head->oldest);
        before = value->entries[i].arrival;
    }
    if (value->last.is_known && !reader->fault)
        get_last(reader, value);
    if (!reader->fault)
        check_whole(reader, value, head->oldest);
}

int dm_reg_name_decode(struct dm_reg_name_value *value, const void *bytes, size_t size, const char **ret_reason)
{
    struct reader reader;
    struct head head;
    int counts[3], result;

    dm_reg_name_init(value);
    if (!size)
        return 0;
    reader = begin(bytes, size, &value->version);
    get_form(&reader, FORM_NAME);
    head = get_head(&reader, value);
    counts[0] = value->hold_count, counts[1] = value->queue_count, counts[2] = value->sleeper_count;
    value->hold_count = value->queue_count = value->sleeper_count = 0;
    result = reader.fault
                 ? 0
                 : dm_reg_name_reserve(value, head.sessions, head.conditions, counts[0] + counts[1] + counts[2]);
    if (!reader.fault && !result) {
        value->hold_count = counts[0], value->queue_count = counts[1], value->sleeper_count = counts[2];
        get_rest(&reader, value, &head);
    }
    if (!result)
        result = finish(&reader, ret_reason);
    if (result)
        dm_reg_name_free(value);
    return result;
}

/* ---- a session --------------------------------------------------------------------------- */

size_t dm_reg_session_encode(const struct dm_reg_session_value *value, uint8_t to[DM_REG_SMALL_MAX])
{
    struct writer writer = { to, DM_REG_SMALL_MAX, 0 };

    put_head(&writer, &value->version, value->is_dead ? FORM_DEAD_SESSION : FORM_SESSION);
    if (value->is_dead) {
        put_number(&writer, (uint64_t)value->dead_us);
        put_text(&writer, value->label[0] ? value->label : NO_LABEL);
        return writer.size;
    }
    put_number(&writer, value->beat);
    put_number(&writer, value->lease_ms);
    put_text(&writer, value->label);
    put_number(&writer, (uint64_t)value->broken_count);
    for (int i = 0; i < value->broken_count; i++)
        put_word(&writer, value->broken[i]);
    return writer.size;
}

static void get_living(struct reader *reader, struct dm_reg_session_value *value)
{
    value->beat = get_number(reader, DM_REG_NUMBER_LIMIT - 1);
    value->lease_ms = (uint32_t)get_number(reader, DM_LEASE_MAX_MS);
    get_text(reader, value->label, sizeof value->label);
    value->broken_count = get_count(reader, DM_REG_NOTES_MAX, 8);
    for (int i = 0; i < value->broken_count; i++)
        value->broken[i] = get_word(reader);
    if (!value->lease_ms)
        set_fault(reader, "it has no lease");
}

int dm_reg_session_decode(const void *bytes, size_t size, struct dm_reg_session_value *ret_value,
                          const char **ret_reason)
{
    struct dm_reg_session_value value = { 0 };
    struct reader reader = begin(bytes, size, &value.version);
    int result;

    value.is_dead = reader.left && *reader.at == FORM_DEAD_SESSION;
    get_form(&reader, value.is_dead ? FORM_DEAD_SESSION : FORM_SESSION);
    if (value.is_dead) {
        value.dead_us = (int64_t)get_number(&reader, DM_REG_NUMBER_LIMIT - 1);
        get_text(&reader, value.label, sizeof value.label);
    } else {
        get_living(&reader, &value);
    }
    result = finish(&reader, ret_reason);
    if (result == 0)
        *ret_value = value;
    return result;
}

/* ---- the mark ---------------------------------------------------------------------------- */

size_t dm_reg_mark_encode(const struct dm_reg_mark_value *value, uint8_t to[DM_REG_SMALL_MAX])
{
    struct writer writer = { to, DM_REG_SMALL_MAX, 0 };

    put_head(&writer, &value->version, FORM_MARK);
    put_text(&writer, value->identity);
    put_number(&writer, value->quiet_ms);
    return writer.size;
}

int dm_reg_mark_decode(const void *bytes, size_t size, struct dm_reg_mark_value *ret_value, const char **ret_reason)
{
    struct dm_reg_mark_value value = { 0 };
    struct reader reader = begin(bytes, size, &value.version);
    int result;

    get_form(&reader, FORM_MARK);
    get_text(&reader, value.identity, sizeof value.identity);
    value.quiet_ms = get_number(&reader, DM_REG_NUMBER_LIMIT - 1);
    result = finish(&reader, ret_reason);
    if (result == 0)
        *ret_value = value;
    return result;
}

/* ---- a binding --------------------------------------------------------------------------- */

size_t dm_reg_binding_encode(const struct dm_reg_binding_value *value, uint8_t to[DM_REG_SMALL_MAX])
{
    struct writer writer = { to, DM_REG_SMALL_MAX, 0 };

    put_head(&writer, &value->version, FORM_BINDING);
    put_text(&writer, value->mutex);
    return writer.size;
}

int dm_reg_binding_decode(const void *bytes, size_t size, struct dm_reg_binding_value *ret_value,
                          const char **ret_reason)
{
    struct dm_reg_binding_value value = { 0 };
    struct reader reader = begin(bytes, size, &value.version);
    int result;

    get_form(&reader, FORM_BINDING);
    get_text(&reader, value.mutex, sizeof value.mutex);
    result = finish(&reader, ret_reason);
    if (result == 0)
        *ret_value = value;
    return result;
}
