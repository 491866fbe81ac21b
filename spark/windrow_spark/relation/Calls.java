package windrow;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.function.BiFunction;
import org.apache.spark.util.ThreadUtils;

/**
 * Calls of Python from a few threads. Each thread that calls Python keeps a connection and a thread
 * of Python, and Spark runs shuffles in a pool that starts a new thread for each.
 */
final class Calls {
    private static final ExecutorService THREADS =
        ThreadUtils.newDaemonCachedThreadPool("windrow-python", 16, 60);

    private Calls() {}

    static Object answer(final BiFunction python, final Object first, final Object second) {
        Future answer = THREADS.submit(new Callable() {
            @Override
            public Object call() {
                return python.apply(first, second);
            }
        });
        try {
            return answer.get();
        } catch (InterruptedException error) {
            answer.cancel(true);
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the query was cancelled while it was planned");
        } catch (ExecutionException error) {
            if (error.getCause() instanceof RuntimeException) {
                throw (RuntimeException) error.getCause();
            }
            throw new IllegalStateException(error.getCause());
        }
    }
}
