/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/tls_errors.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#define ERRORS_MOST ERR_NUM_ERRORS

/* Copies the texts, because OpenSSL frees a text when it reuses its slot in the queue. */
struct dm_tls_errors {
    int count;
    struct error {
        unsigned long code;
        char *file, *function, *data;
        int line;
    } list[ERRORS_MOST];
};

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

struct dm_tls_errors *dm_tls_errors_take(void)
{
    struct dm_tls_errors *errors;
    const char *file, *function, *data;
    unsigned long code;
    int line, flags;

    if (!ERR_peek_error())
        return NULL;
    errors = calloc(1, sizeof *errors);
    while (errors && errors->count < ERRORS_MOST && (code = ERR_get_error_all(&file, &line, &function, &data, &flags)))
        errors->list[errors->count++] = (struct error){
            .code = code,
            .file = copy(file),
            .function = copy(function),
            .data = copy(flags & ERR_TXT_STRING ? data : NULL),
            .line = line,
        };
    ERR_clear_error();
    return errors;
}

static void put_back(struct error *error)
{
    ERR_new();
    ERR_set_debug(error->file, error->line, error->function);
    if (error->data && error->data[0])
        ERR_set_error(ERR_GET_LIB(error->code), ERR_GET_REASON(error->code), "%s", error->data);
    else
        ERR_set_error(ERR_GET_LIB(error->code), ERR_GET_REASON(error->code), NULL);
    free(error->file);
    free(error->function);
    free(error->data);
}

unsigned long dm_tls_errors_put_back(struct dm_tls_errors *errors)
{
    unsigned long error = ERR_peek_last_error();

    if (error)
        ERR_clear_error();
    for (int i = 0; errors && i < errors->count; i++)
        put_back(&errors->list[i]);
    free(errors);
    return error;
}
