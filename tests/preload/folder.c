/* SPDX-License-Identifier: BSD-2-Clause */
#include "folder.h"

char folder[64];
