package windrow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.runtime.AbstractFunction1;

/**
 * Refuses statements that Spark has for tables of its own catalog alone, before Spark does, which
 * does not say what to do instead.
 */
public final class RefusedStatements extends SparkStrategy {
    private static final Map PREPARED = new WeakHashMap();
    private static final Map STATEMENTS = new HashMap();

    static {
        STATEMENTS.put("AnalyzeColumn", "ANALYZE TABLE");
        STATEMENTS.put("AnalyzeTable", "ANALYZE TABLE");
        STATEMENTS.put("AnalyzeTables", "ANALYZE TABLE");
        STATEMENTS.put("CreateIndex", "CREATE INDEX");
        STATEMENTS.put("DescribeRelationJsonCommand", "DESCRIBE PARTITION AS JSON");
        STATEMENTS.put("DropIndex", "CREATE INDEX");
        STATEMENTS.put("LoadData", "LOAD DATA");
        STATEMENTS.put("RecoverPartitions", "MSCK REPAIR TABLE");
        STATEMENTS.put("RenamePartitions", "ALTER TABLE");
        STATEMENTS.put("RepairTable", "MSCK REPAIR TABLE");
        STATEMENTS.put("SetTableLocation", "ALTER TABLE");
        STATEMENTS.put("SetTableSerDeProperties", "ALTER TABLE");
        STATEMENTS.put("TruncatePartition", "TRUNCATE PARTITION");
    }

    /** From now on, the sessions that share these extensions have it. */
    static void extend(SparkSessionExtensions extensions) {
        synchronized (PREPARED) {
            if (PREPARED.put(extensions, Boolean.TRUE) != null) return;
        }
        extensions.injectPlannerStrategy(new Builder());
    }

    @Override
    public SEQ apply(LogicalPlan plan) {
        String statement = (String) STATEMENTS.get(plan.getClass().getSimpleName());
        Object on = plan.children().size() == 0 ? null : plan.children().apply(0);
        if (plan.getClass().getSimpleName().equals("MergeIntoTable")
                && on instanceof DataSourceV2ScanRelation) {
            Object into = ((DataSourceV2ScanRelation) on).relation().table();
            if (into instanceof ErasableTable) ((ErasableTable) into).refuse("write");
        }
        if (statement != null && !isWhole(plan)) {
            if (on instanceof ResolvedTable) {
                ResolvedTable table = (ResolvedTable) on;
                if (table.catalog() instanceof Catalog)
                    throw ((Catalog) table.catalog()).refusal(statement, table.identifier());
            } else if (on instanceof ResolvedNamespace
                    && ((ResolvedNamespace) on).catalog() instanceof Catalog) {
                throw ((Catalog) ((ResolvedNamespace) on).catalog()).refusal(statement, "…");
            }
        }
        return (SEQ) PythonUtils.toSeq(new ArrayList());
    }

    /** Tells whether it describes a table rather than a partition. */
    private static boolean isWhole(LogicalPlan plan) {
        return plan.getClass().getSimpleName().equals("DescribeRelationJsonCommand")
            && ((scala.collection.Map) plan.productElement(1)).isEmpty();
    }

    private static final class Builder extends AbstractFunction1 {
        @Override
        public Object apply(Object session) {
            return new RefusedStatements();
        }
    }
}
