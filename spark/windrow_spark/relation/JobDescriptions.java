package windrow;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/**
 * Describes a query's jobs by the scans that it reads, unless its user has described them, and notes the
 * packs that their tasks could not read.
 */
public final class JobDescriptions extends SparkListener {
    static final String QUERY = "spark.sql.execution.id";
    private static final String DESCRIPTION = "spark.job.description";
    private static final int MOST_ENDS = 1000;
    /** In the message of each failure by a file that is not the planned one. */
    private static final String STALE = "since the plan was made";
    /** In the message of each failure by a pack: its name. */
    private static final Pattern PACK = Pattern.compile("pack '(.+?)' cannot be read \\(");
    private static final Map BY_CONTEXT = new WeakHashMap();

    private final SparkContext context;
    private final Map described = new HashMap();
    /** What `Ends.endOf` returns, of the latest scans. */
    private final Map ends = new LinkedHashMap();

    /** The descriptions that a query has had, and the properties of the threads that run it. */
    private static final class Query {
        String text;
        final Set texts = new HashSet();
        final Set scans = new HashSet();
        final Map threads = new IdentityHashMap();
    }

    /** Tells Python when queries have ended. */
    public static final class Ends {
        /**
         * Returns when the query of a scan ended, in milliseconds since 1970; 0 if it has not. The
         * number is negative if the query failed because a file had changed.
         *
         * @param scan The scan's description.
         */
        public long endOf(SparkContext context, String scan) {
            return of(context).endOf(scan);
        }
    }

    synchronized long endOf(String scan) {
        Long end = (Long) ends.get(scan);
        return end == null ? 0L : end.longValue();
    }

    private JobDescriptions(SparkContext context) {
        this.context = context;
    }

    static synchronized JobDescriptions of(SparkContext context) {
        WeakReference known = (WeakReference) BY_CONTEXT.get(context);
        JobDescriptions jobs = known == null ? null : (JobDescriptions) known.get();
        if (jobs == null) {
            jobs = new JobDescriptions(context);
            context.addSparkListener(jobs);
            BY_CONTEXT.put(context, new WeakReference(jobs));
        }
        return jobs;
    }

    /**
     * Adds a scan to the description of a query's further jobs.
     *
     * @param query The query.
     * @param planner The properties of the thread that has planned the query. If that thread runs
     *     the query, it starts further jobs, though the scan may have begun in another thread.
     * @param scan Its description.
     */
    synchronized void describe(String query, Properties planner, String scan) {
        Query known = (Query) described.get(query);
        if (known == null) described.put(query, known = new Query());
        known.threads.put(context.getLocalProperties(), Boolean.TRUE);
        if (query.equals(planner.getProperty(QUERY))) known.threads.put(planner, Boolean.TRUE);
        known.text = known.text == null ? scan : known.text + "; " + scan;
        known.texts.add(known.text);
        known.scans.add(scan);
        Iterator threads = known.threads.keySet().iterator();
        while (threads.hasNext()) {
            Properties properties = (Properties) threads.next();
            String now = properties.getProperty(DESCRIPTION);
            if (now == null || isOurs(now)) properties.setProperty(DESCRIPTION, known.text);
        }
    }

    /** Tells whether a description is ours, perhaps left by a query that has just ended. */
    private boolean isOurs(String text) {
        Iterator all = described.values().iterator();
        while (all.hasNext()) if (((Query) all.next()).texts.contains(text)) return true;
        return false;
    }

    /** Tells whether a query failed because a file had changed; Spark's own message need not say so. */
    private static boolean isStale(SparkListenerSQLExecutionEnd end) {
        if (!end.executionFailure().isDefined()) return false;
        Throwable error = (Throwable) end.executionFailure().get();
        while (error != null) {
            if (String.valueOf(error.getMessage()).contains(STALE)) return true;
            error = error.getCause();
        }
        return false;
    }

    /** Lets further queries read the files of a pack that a task could not read. */
    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
        if (!(end.reason() instanceof ExceptionFailure)) return;
        // Spark's own error need not name the pack, but one of its causes does.
        Matcher pack = PACK.matcher(((ExceptionFailure) end.reason()).toErrorString());
        if (pack.find()) OpenedPacks.failed(pack.group(1));
    }

    @Override
    public synchronized void onOtherEvent(SparkListenerEvent event) {
        if (!(event instanceof SparkListenerSQLExecutionEnd)) return;
        SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
        Query known = (Query) described.remove(String.valueOf(end.executionId()));
        if (known == null) return;
        boolean isStale = isStale(end);
        Iterator scans = known.scans.iterator();
        while (scans.hasNext()) {
            if (ends.size() >= MOST_ENDS) ends.remove(ends.keySet().iterator().next());
            ends.put(scans.next(), Long.valueOf(isStale ? -end.time() : end.time()));
        }
        Iterator threads = known.threads.keySet().iterator();
        while (threads.hasNext()) {
            Properties properties = (Properties) threads.next();
            String now = properties.getProperty(DESCRIPTION);
            if (now != null && known.texts.contains(now)) properties.remove(DESCRIPTION);
        }
    }
}
