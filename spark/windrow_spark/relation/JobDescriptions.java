package windrow;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/** Describes a query's jobs by the scans that it reads, unless its user has described them. */
public final class JobDescriptions extends SparkListener {
    private static final String DESCRIPTION = "spark.job.description";
    private static final Map BY_CONTEXT = new WeakHashMap();

    private final SparkContext context;
    // By query: the properties of the thread that runs it, and our description.
    private final Map described = new HashMap();

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

    synchronized void describe(String query, String scan) {
        Properties properties = context.getLocalProperties();
        String now = properties.getProperty(DESCRIPTION);
        Object[] known = (Object[]) described.get(query);
        boolean ours = known != null && known[1].equals(now);
        if (now != null && !ours && !isOurs(now)) return;
        String text = ours ? known[1] + "; " + scan : scan;
        properties.setProperty(DESCRIPTION, text);
        described.put(query, new Object[] {properties, text});
    }

    /** Tells whether a description is ours, left by a query that has just ended. */
    private boolean isOurs(String text) {
        Iterator all = described.values().iterator();
        while (all.hasNext()) if (((Object[]) all.next())[1].equals(text)) return true;
        return false;
    }

    public synchronized void onOtherEvent(SparkListenerEvent event) {
        if (!(event instanceof SparkListenerSQLExecutionEnd)) return;
        long query = ((SparkListenerSQLExecutionEnd) event).executionId();
        Object[] known = (Object[]) described.remove(String.valueOf(query));
        if (known != null) ((Properties) known[0]).remove(DESCRIPTION, known[1]);
    }
}
