/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/postgres/open.h"

const char dm_postgres_folder[] = PKGLIBDIR;
