/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols of all kinds, with symbols_again.c. */
#include <pthread.h>

pthread_mutex_t global_lock = PTHREAD_MUTEX_INITIALIZER;
extern pthread_mutex_t alias_lock __attribute__((alias("global_lock")));
static pthread_mutex_t only_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t twice_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t zero_lock; /* .bss */
__thread pthread_mutex_t thread_lock;
const int constant_lock = 5;
struct {
    int numbers[4];
    pthread_mutex_t lock;
} box_lock;

void again(void);

int main(void)
{
    again();
    return pthread_mutex_trylock(&only_lock) + pthread_mutex_trylock(&twice_lock) +
           pthread_mutex_trylock(&thread_lock) + constant_lock;
}
