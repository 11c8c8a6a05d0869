/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/keys.h"

#include <stdio.h>
#include <string.h>

#include "registers/version.h"

/* Where the hashes of a cut key begin. */
#define CUT_LENGTH (DM_REG_KEY_MAX - 34)

static bool is_plain(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           (byte && strchr("._~/-", byte));
}

void dm_reg_key_write(const char *name, char ret_key[DM_REG_KEY_MAX + 1])
{
    uint64_t first = dm_reg_identity_number(name + 1), second = first;
    size_t length = 2;
    const char *at;

    ret_key[0] = name[0];
    ret_key[1] = '/';
    for (at = name + 1; *at && length < DM_REG_KEY_MAX - 2; at++) {
        if (is_plain(*at))
            ret_key[length++] = *at;
        else
            length += (size_t)snprintf(ret_key + length, 4, "%%%02X", (unsigned char)*at);
    }
    ret_key[length] = '\0';
    if (!*at)
        return;
    for (at = name + strlen(name); at > name + 1; at--)
        second = (second ^ (uint8_t)at[-1]) * UINT64_C(0x100000001b3);
    snprintf(ret_key + CUT_LENGTH, 35, "~~%016llx%016llx", (unsigned long long)first, (unsigned long long)second);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The letter of the key, and what its bytes stand for, up to `length` of them.  An escape that is cut ends it. */
static void decode(const char *key, size_t length, char ret_name[DM_REG_NAME_ROOM])
{
    char *to = ret_name;

    *to++ = key[0];
    for (size_t i = 2; i < length && to < ret_name + DM_REG_NAME_ROOM - 1; i++) {
        int byte = (unsigned char)key[i];

        if (byte == '%') {
            if (length - i < 3 || digit(key[i + 1]) < 0 || digit(key[i + 2]) < 0)
                break;
            byte = digit(key[i + 1]) << 4 | digit(key[i + 2]);
            i += 2;
        }
        if (byte == 0)
            break;
        *to++ = (char)byte;
    }
    *to = '\0';
}

/* What dm_reg_key_write() would write for the decoded name decides, so that nobody's similar key passes for ours. */
bool dm_reg_key_read(const char *key, char ret_name[DM_REG_NAME_ROOM])
{
    size_t length = strnlen(key, DM_REG_KEY_MAX + 1);
    char again[DM_REG_KEY_MAX + 1];

    ret_name[0] = '\0';
    if (length < 3 || length > DM_REG_KEY_MAX || !strchr("nacd", key[0]) || key[1] != '/')
        return false;
    decode(key, length, ret_name);
    dm_reg_key_write(ret_name, again);
    if (strcmp(again, key) == 0)
        return true;
    if (length == DM_REG_KEY_MAX && memcmp(key + CUT_LENGTH, "~~", 2) == 0)
        decode(key, CUT_LENGTH, ret_name);
    else
        ret_name[0] = '\0';
    return false;
}
