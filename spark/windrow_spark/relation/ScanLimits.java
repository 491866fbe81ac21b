package windrow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Tells scans how many of their rows are enough. Runs last, for a whole query with its subqueries:
 * Spark puts joins in the place of conditions, takes functions of Python out of them, and makes
 * subqueries, each of which it has optimized on its own, a part of the plan.
 */
public final class ScanLimits extends Rule {
    /** Gives a session its last rules, whose place only sessions themselves can fill. */
    static void addTo(SparkSession session) {
        ExperimentalMethods methods = session.experimental();
        synchronized (methods) {
            SEQ rules = (SEQ) methods.extraOptimizations();
            int count = rules.size();
            if (count > 0 && rules.apply(count - 1) instanceof ScanLimits) return;
            List all = new ArrayList();
            for (int i = 0; i < count; i++) {
                Object rule = rules.apply(i);
                if (!(rule instanceof RuntimeFilters || rule instanceof ScanLimits)) all.add(rule);
            }
            all.add(new RuntimeFilters());
            all.add(new ScanLimits());
            methods.extraOptimizations_$eq((SEQ) PythonUtils.toSeq(all));
        }
    }

    @Override
    public TreeNode apply(TreeNode plan) {
        return plan instanceof Subquery ? plan : limited((LogicalPlan) plan, TableIndex.NO_LIMIT);
    }

    private static LogicalPlan limited(LogicalPlan plan, long enough) {
        if (TableStrategy.isOurs(plan)) {
            TableIndex index = TableHints.indexOf((LogicalRelation) plan);
            return index.limit == enough ? plan
                : TableHints.with((LogicalRelation) plan, index.limited(enough));
        }
        if (plan instanceof LocalLimit) {
            enough = fewer((LocalLimit) plan, enough);
        } else if (!(plan instanceof Project || plan instanceof Filter)) {
            enough = TableIndex.NO_LIMIT;
        }
        SEQ children = (SEQ) plan.children();
        List changed = new ArrayList();
        boolean isSame = true;
        for (int i = 0; i < children.size(); i++) {
            LogicalPlan child = limited((LogicalPlan) children.apply(i), enough);
            isSame &= child == children.apply(i);
            changed.add(child);
        }
        if (!isSame) {
            plan = (LogicalPlan) plan.withNewChildren((SEQ) PythonUtils.toSeq(changed));
        }
        return (LogicalPlan) plan.transformExpressions(new Subqueries());
    }

    private static long fewer(LocalLimit limit, long enough) {
        if (!(limit.limitExpr() instanceof Literal)) return enough;
        long rows = ((Number) ((Literal) limit.limitExpr()).value()).longValue();
        if (rows < 1) return enough;
        return enough == TableIndex.NO_LIMIT ? rows : Math.min(rows, enough);
    }

    /** Changes the plans of subqueries, each on its own. */
    private static final class Subqueries extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof PlanExpression
                && ((PlanExpression) node).plan() instanceof LogicalPlan;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            PlanExpression subquery = (PlanExpression) node;
            LogicalPlan plan = (LogicalPlan) subquery.plan();
            LogicalPlan changed = limited(plan, TableIndex.NO_LIMIT);
            return changed == plan ? subquery : subquery.withNewPlan(changed);
        }
    }
}
