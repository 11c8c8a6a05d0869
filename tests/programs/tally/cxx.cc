// SPDX-License-Identifier: BSD-2-Clause
#include <mutex>

#include "tally.h"

namespace ledger {

// std::mutex is a pthread_mutex_t, and calls the same functions.
class Page {
public:
    static void add(const char *path) { tally_add(path, lock_.native_handle()); }

private:
    static std::mutex lock_;
};

std::mutex Page::lock_;

} // namespace ledger

extern "C" void tally_in_cxx(const char *path)
{
    ledger::Page::add(path);
}
