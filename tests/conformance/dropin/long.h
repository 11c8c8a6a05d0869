/* SPDX-License-Identifier: BSD-2-Clause */
/* Long words for -DDMUTEX_UNIT: with "long/" before them and ":0" behind, of 200 bytes and of 201.
 */
#define LONG_10 "0123456789"
#define LONG_50 LONG_10 LONG_10 LONG_10 LONG_10 LONG_10
#define LONG_190 LONG_50 LONG_50 LONG_50 LONG_10 LONG_10 LONG_10 LONG_10
#define LONGEST LONG_190 "012"
#define TOO_LONG LONGEST "3"
