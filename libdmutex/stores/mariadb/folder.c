/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/mariadb/open.h"

const char dm_mariadb_folder[] = PKGLIBDIR;
