/* SPDX-License-Identifier: BSD-2-Clause */
/* A long word for -DDMUTEX_UNIT: with "long/" before it and ":0" after it, 200 bytes. */
#define LONG_10 "0123456789"
#define LONG_50 LONG_10 LONG_10 LONG_10 LONG_10 LONG_10
#define LONG_190 LONG_50 LONG_50 LONG_50 LONG_10 LONG_10 LONG_10 LONG_10
#define LONGEST LONG_190 "012"
